"""The templates and cases that were released with XTREME-R and CheckList."""
