package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// sentinel is the name of the pod that is written last.
const sentinel = "sentinel"

type client struct {
	informer cache.SharedIndexInformer
	handlers int

	calls        atomic.Int64
	noting       atomic.Bool
	sentinelEnds atomic.Bool
	// relist is the number of calls after which a handler has received the whole list, while a relist is expected.
	relist atomic.Int64

	lock  sync.Mutex
	notes [][2]uint64
	ended chan struct{}
}

func (c *client) see(name, version string) {
	c.calls.Add(1)
	if c.noting.Load() {
		number, _ := strconv.ParseUint(version, 10, 64)
		c.lock.Lock()
		c.notes = append(c.notes, [2]uint64{number, uint64(time.Now().UnixNano())})
		c.lock.Unlock()
	}
	if name == sentinel && c.sentinelEnds.Load() {
		c.end()
	}
}

func (c *client) end() {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.ended != nil {
		c.ended <- struct{}{}
	}
}

func (c *client) objects() int {
	return len(c.informer.GetStore().ListKeys())
}

// serve answers commands until the end of the input.
func (c *client) serve(began time.Time) error {
	wall := time.Since(began).Seconds()
	synced := usage()
	synced["wall"] = wall
	synced["objects"] = c.objects()
	say(synced)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch told := lines.Text(); told {
		case "usage":
			say(usage())
		case "events", "latency", "reads", "relist":
			say(c.phase(told))
		default:
			return fmt.Errorf("%q is nothing that a client can be told", told)
		}
	}
	return lines.Err()
}

func say(answer map[string]any) {
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func (c *client) phase(name string) map[string]any {
	c.lock.Lock()
	// Buffered, so that a handler never blocks when it reports the end.
	c.ended = make(chan struct{}, 2*c.handlers)
	c.notes = nil
	c.lock.Unlock()
	c.noting.Store(name == "latency")
	c.sentinelEnds.Store(name != "relist")
	c.calls.Store(0)
	if name == "relist" {
		c.relist.Store(int64(c.objects()))
	}
	forgetPeak()
	used, began := cpu(), time.Now()
	say(map[string]any{"ready": true})
	answer := map[string]any{"merged": 0}
	if name == "reads" {
		answer["reads"] = c.reads()
	} else {
		c.wait()
	}
	answer["cpu"] = cpu() - used
	answer["wall"] = time.Since(began).Seconds()
	_, answer["peak"] = memory()
	answer["calls"] = c.calls.Load()
	if name == "latency" {
		c.noting.Store(false)
		answer["seen"] = c.notes
	}
	return answer
}

func (c *client) wait() {
	for range c.handlers {
		<-c.ended
	}
}

// reads reads continuously until the phase ends.
func (c *client) reads() map[string]any {
	var over atomic.Bool
	result := make(chan map[string]any)
	go func() {
		store := c.informer.GetIndexer()
		// The pods of the list, in an order that differs from the map's.
		keys := store.ListKeys()
		slices.Sort(keys)
		random := rand.New(rand.NewSource(1))
		var times [3][]int64
		for !over.Load() {
			key := keys[random.Intn(len(keys))]
			var pod *v1.Pod
			times[0] = append(times[0], timed(func() {
				found, _, _ := store.GetByKey(key)
				pod = found.(*v1.Pod)
			}))
			times[1] = append(times[1], timed(func() { keep = store.List() }))
			times[2] = append(times[2], timed(func() { keep, _ = store.ByIndex(byNode, pod.Spec.NodeName) }))
		}
		result <- map[string]any{"get": shown(times[0]), "list": shown(times[1]), "node": shown(times[2])}
	}()
	c.wait()
	over.Store(true)
	return <-result
}

// keep prevents the compiler from removing reads whose results are unused.
var keep []any

func timed(read func()) int64 {
	began := time.Now()
	read()
	return time.Since(began).Nanoseconds()
}

func shown(times []int64) map[string]any {
	slices.Sort(times)
	at := func(of float64) int64 {
		if len(times) == 0 {
			return 0
		}
		return times[int(float64(len(times))*of)]
	}
	return map[string]any{"count": len(times), "p50": at(0.5), "p99": at(0.99)}
}
