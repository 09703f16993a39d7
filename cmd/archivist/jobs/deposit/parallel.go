package deposit

import "sync"

// inParallel calls list with a function that runs other ones, some at a time, and waits for all of them.
func inParallel(n int, list func(do func(func()))) {
	var all sync.WaitGroup
	free := make(chan struct{}, n)
	list(func(f func()) {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			f()
		})
	})
	all.Wait()
}
