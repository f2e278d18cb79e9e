"""One suite of script cases for every host that runs moonbox."""
