"""What fits cost: budgets, plans, reports. Numbers that are public; no row comes here."""
