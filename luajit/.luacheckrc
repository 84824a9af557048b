std = "luajit"
max_line_length = 120
-- No warning about a method that does not use `self`.
self = false
