package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// queue is a work queue and the operations of its workers.
type queue struct {
	workqueue.TypedDelayingInterface[string]
	// forget is called for every item that is done, if the queue has a rate limiter.
	forget func(string)
}

func newQueue(form string) (queue, error) {
	switch form {
	case "plain":
		config := workqueue.TypedDelayingQueueConfig[string]{}
		return queue{workqueue.NewTypedDelayingQueueWithConfig(config), func(string) {}}, nil
	case "rate-limited":
		limited := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
		return queue{limited, limited.Forget}, nil
	case "controller-runtime":
		prioritized := priorityqueue.New[string]("bench")
		return queue{prioritized, prioritized.Forget}, nil
	default:
		return queue{}, fmt.Errorf("there is no queue %q", form)
	}
}

// serveQueue answers commands until the end of the input: see src/bin/queue.rs in peers/bench.
func serveQueue(form string) error {
	if _, err := newQueue(form); err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var told string
		var workers, count, rounds int
		if _, err := fmt.Sscan(lines.Text(), &told, &workers, &count, &rounds); err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		keys := queueKeys(count)
		q, err := newQueue(form)
		if err != nil {
			return err
		}
		switch told {
		case "work":
			say(q.work(keys, workers, rounds, func(_ int, key string) { q.Add(key) }))
		case "delayed":
			say(q.work(keys, workers, rounds, func(at int, key string) { q.AddAfter(key, queueDelay(at)) }))
		case "memory":
			say(memoryOf(keys, q.Add))
		case "delayed-memory":
			say(memoryOf(keys, func(key string) { q.AddAfter(key, time.Hour) }))
		default:
			return fmt.Errorf("%q is nothing that a queue can be told", told)
		}
		q.ShutDown()
	}
	return lines.Err()
}

func queueKeys(count int) []string {
	keys := make([]string, count)
	for at := range keys {
		keys[at] = fmt.Sprintf("namespace-%d/name-%d", at%100, at)
	}
	return keys
}

// queueDelay returns a delay below one second; consecutive keys get unordered delays.
func queueDelay(at int) time.Duration {
	return time.Duration(at*7919%1_000_000) * time.Microsecond
}

// work adds all keys while workers take them, and repeats that once all are done.
func (q queue) work(keys []string, workers, rounds int, add func(int, string)) map[string]any {
	var done atomic.Int64
	ended := make(chan struct{})
	for range workers {
		go func() {
			for {
				key, over := q.Get()
				if over {
					return
				}
				q.forget(key)
				q.Done(key)
				if done.Add(1)%int64(len(keys)) == 0 {
					ended <- struct{}{}
				}
			}
		}()
	}
	used, began := cpu(), time.Now()
	for range rounds {
		for at, key := range keys {
			add(at, key)
		}
		<-ended
	}
	return map[string]any{"wall": time.Since(began).Seconds(), "cpu": cpu() - used}
}

// memoryOf returns the growth of resident memory after all keys were added.
func memoryOf(keys []string, add func(string)) map[string]any {
	resident := func() int64 {
		runtime.GC()
		debug.FreeOSMemory()
		bytes, _ := memory()
		return int64(bytes)
	}
	before := resident()
	for _, key := range keys {
		add(key)
	}
	// A delaying queue takes items in asynchronously.
	time.Sleep(time.Second)
	after := resident()
	runtime.KeepAlive(keys)
	return map[string]any{"bytes": after - before}
}
