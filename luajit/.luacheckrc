std = "luajit"
max_line_length = 120
-- An `err` that is only passed on, or a method that needs no self, is not a mistake.
self = false
