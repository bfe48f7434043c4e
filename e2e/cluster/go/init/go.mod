module kvfence.invalid/stage/init

go 1.26.0
