// Package mcpserver is a Model Context Protocol server that gives an agent's model its run as tools: read its task and its wake,
// comment, move and complete the task, make subtasks, ask for and give approvals, be woken again. It knows the run by its token, and
// does everything through the API, whose rules hold. What a tool refuses, it refuses in words that let the model correct itself.
package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Name is how programs are told of the server. Their models see it in the names of the tools.
const Name = "rouse"

// instructions tell a model what the tools are, once for all of them.
const instructions = "Rouse woke you for one run of work, mostly about one task. These tools act in your name and at once. " +
	"Your task stays open until you complete it (complete_task), or say with move_task why you cannot go on. " +
	"What a tool has done counts: do not ask for the same once more among the actions of your last answer."

// New makes the server on a client of the API. version is that of the program.
func New(api *API, version string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: Name, Title: "Rouse", Version: version}, &mcp.ServerOptions{
		Instructions: instructions,
		Logger:       slog.New(slog.DiscardHandler), // standard error is the program's, and requests hold what agents write
		Capabilities: &mcp.ServerCapabilities{},     // tools follow from what is added; the list of them does not change
	})
	run := &run{api: api}
	for _, t := range tools {
		server.AddTool(t.described(), t.handler(run))
	}
	return server
}

// Serve answers a client on two streams until its input ends, or ctx does.
func Serve(ctx context.Context, server *mcp.Server, in io.ReadCloser, out io.WriteCloser) error {
	if err := server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out}); err != nil && ctx.Err() == nil {
		return fmt.Errorf("talk to the agent's program: %w", err)
	}
	return nil
}

// tool is one tool: what a model is told of it, and what it does.
type tool struct {
	name, title, description string
	arguments                []argument
	reads                    bool // it changes nothing
	do                       func(ctx context.Context, r *run, given arguments) (any, error)
}

func (t tool) described() *mcp.Tool {
	no := false
	return &mcp.Tool{Name: t.name, Title: t.title, Description: t.description, InputSchema: schemaOf(t.arguments),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.reads, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &no}}
}

// handler calls the tool and tells its answer as JSON, or its refusal in words. A refusal is an answer, too: the model reads it.
func (t tool) handler(r *run) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		given, err := t.read(req.Params.Arguments)
		if err == nil {
			var answer any
			if answer, err = t.do(ctx, r, given); err == nil {
				return told(answer)
			}
		}
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: t.name + " was refused: " + err.Error()}}}, nil
	}
}

func told(answer any) (*mcp.CallToolResult, error) {
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("write a tool's answer: %w", err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil
}
