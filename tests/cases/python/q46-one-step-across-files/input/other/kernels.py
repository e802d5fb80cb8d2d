sk = 3
