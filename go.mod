module github.com/kilter-dev/kilter

go 1.26.0
