"""Programs whose words say more than a table can tell, each by the name that the data gives it."""
