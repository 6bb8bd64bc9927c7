"""What lies in the places where extensions are looked for. None of their code runs here."""
