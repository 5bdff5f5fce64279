// gossip serve | gossip ask HOST: lines there and back by many goroutines; what they do comes from
// select, the order of maps, timers, and every source of chance.
package main

import (
	"bufio"
	cryptorand "crypto/rand"
	"fmt"
	"math/rand"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

const port = ":9100"

func serve() {
	listener, err := net.Listen("tcp", port)
	if err != nil {
		panic(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			defer connection.Close()
			lines := bufio.NewScanner(connection)
			for lines.Scan() {
				time.Sleep(time.Duration(rand.Intn(20)) * time.Millisecond)
				fmt.Println(time.Now().UnixNano(), connection.RemoteAddr(), lines.Text())
				fmt.Fprintln(connection, strings.ToUpper(lines.Text()))
			}
		}()
	}
}

func converse(host string, number int, said chan<- string) {
	connection, err := net.Dial("tcp", host+port)
	if err != nil {
		said <- err.Error()
		return
	}
	defer connection.Close()
	lines := bufio.NewScanner(connection)
	words := map[string]int{}
	for n := range 20 {
		words[fmt.Sprint("word", n)] = n
	}
	for word, n := range words {
		key := make([]byte, 4)
		_, _ = cryptorand.Read(key)
		began := time.Now()
		fmt.Fprintf(connection, "%d %s %d %x\n", number, word, n, key)
		if !lines.Scan() {
			said <- fmt.Sprint(number, " lost ", lines.Err())
			return
		}
		said <- fmt.Sprint(number, " ", time.Since(began), " ", lines.Text())
		time.Sleep(time.Duration(rand.Intn(100)) * time.Millisecond)
	}
}

func ask(host string) {
	fmt.Println(os.Getpid(), runtime.NumCPU(), rand.Int63())
	said := make([]chan string, 3)
	var all sync.WaitGroup
	for n := range said {
		said[n] = make(chan string, 100)
	}
	for n := range 12 {
		all.Add(1)
		go func() {
			defer all.Done()
			converse(host, n, said[n%3])
		}()
	}
	ended := make(chan bool)
	go func() { all.Wait(); close(ended) }()
	ticker := time.NewTicker(50 * time.Millisecond)
	for {
		select {
		case line := <-said[0]:
			fmt.Println("0:", line)
		case line := <-said[1]:
			fmt.Println("1:", line)
		case line := <-said[2]:
			fmt.Println("2:", line)
		case at := <-ticker.C:
			fmt.Println("tick", at.UnixNano())
		case <-ended:
			fmt.Println("end", time.Now().UnixNano())
			return
		}
	}
}

func main() {
	if os.Args[1] == "serve" {
		serve()
	} else {
		ask(os.Args[2])
	}
}
