"""Reports: pure tables first, then console, markdown, csv and json renderings of them."""
