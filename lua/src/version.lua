-- The version of this script, the same as the program's, and of the binary protocol that it speaks.

return { script = "0.1.0", protocol = 1 }
