"""Private building blocks: functions of arrays and a session."""
