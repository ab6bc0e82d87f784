"""Reports of layer-wise probing: they read what the method `probe` keeps in ``results.json``, and nothing else."""
