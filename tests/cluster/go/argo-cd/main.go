// A Redis in memory, for Argo CD to keep in what it has rendered and compared: the argument is where it listens.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr(os.Args[1]); err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", server.Addr())
	select {}
}
