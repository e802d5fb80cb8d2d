kept = "kept"
