"""Tables and queries of a cell database, one file per noun."""
