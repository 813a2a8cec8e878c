"""Private building blocks: functions of (rows, session). One room for each family of algorithms."""
