package server

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/coder/websocket"
)

// callVariable makes the test program a caller without a token, of the address that it holds.
const callVariable = "SERVER_TEST_CALL"

// call asks the API by HTTP and by a socket, and prints what it was told.
func call(url string) {
	resp, err := http.Post(url, "application/json", strings.NewReader(`{"query":"{ __typename }"}`))
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(os.Stdout, resp.Status+" ")
	_, _ = io.Copy(os.Stdout, resp.Body)
	c, _, err := websocket.Dial(context.Background(), url, &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		panic(err)
	}
	if err := c.Write(context.Background(), websocket.MessageText, []byte(`{"type":"connection_init"}`)); err != nil {
		panic(err)
	}
	_, answer, err := c.Read(context.Background())
	_, _ = io.WriteString(os.Stdout, "\nsocket "+string(answer))
	if err != nil {
		_, _ = io.WriteString(os.Stdout, err.Error())
	}
}
