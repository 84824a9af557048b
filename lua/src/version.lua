-- The version of this script, which is also the program's, and the version of its binary protocol.

return { script = "0.1.0", protocol = 1 }
