// A page about one task or language goes on to the view of the board that ranks it.
location.replace(document.getElementById("whole").href);
