"""What is known of languages and scripts: codes, names, families, segmentation."""
