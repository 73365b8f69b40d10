"""Draw a figure: one description, drawn as SVG, PNG, PDF, interactive HTML and in the terminal.

scene      what a figure is made of: matrices, text, rectangles, lines, pictures
colors     one color for each role
layout     the sizes of labels, and matrices with their labels
equations  X × W = Q: matrices in lines, with operators between them
charts     curves over two axes
svg        as SVG, with exact numbers as titles
raster     as PNG and PDF, through matplotlib
html       as one HTML file with all frames of a figure
terminal   as text
files      write a figure to a file, in the format of its suffix
"""
