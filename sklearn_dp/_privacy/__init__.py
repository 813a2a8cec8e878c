"""The privacy kernel: the only code that draws noise or spends budget."""
