"""Code of others in silence: what it prints, warns or logs of rows goes nowhere."""
