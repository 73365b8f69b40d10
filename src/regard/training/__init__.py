"""The one loop, its optimizer, its folder and its log."""
