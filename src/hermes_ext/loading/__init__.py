"""From a folder to handlers in force: finding, importing, checking; a record for each extension."""
