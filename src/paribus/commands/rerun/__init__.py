"""The verb `paribus rerun`: making a recorded run again, and what would be otherwise in it here."""
