"""From a request to a printable plan of cells; lock files and checks of specs."""
