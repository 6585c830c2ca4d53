module weir.dev/pause

go 1.24
