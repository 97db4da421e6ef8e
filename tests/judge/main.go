// The judge: is a soak's history that of one lock per resource? Porcupine, which was not written here, decides it.
//
//	judge HISTORY
//
// HISTORY has one operation per line, a JSON object with resource, client, token, call_ms, return_ms (all times are of
// one clock) and op:
//
//	acquire  the lock was granted; it is valid until until_ms at least; fence: its fencing token, or null; shared: true
//	         if others that share it may hold it, too; permits: so many may hold the resource at a time, each in a
//	         slot of its own, or 0. Any other lock of that resource takes slot 0.
//	hold     the client was told that it still holds the lock, until until_ms at least
//	release  the client gave the lock up
//	lose     the client holds it no longer and has not released it: its validity has ended, or it was told of a loss
//
// What was acquired is held until it is released or lost; it must be by the end of its validity. A lock of several
// resources has its operations on each of them.
//
// Exit status: 0 if the operations on each resource can be ordered as a lock allows, each taking effect at one moment
// between its call and its return; 1 if not: the operations that contradict each other are printed; 2 if the history
// cannot be read.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sort"

	"github.com/anishathalye/porcupine"
)

const longestLine = 1 << 20

type operation struct {
	Op       string   `json:"op"`
	Resource string   `json:"resource"`
	Client   string   `json:"client"`
	Token    string   `json:"token"`
	CallMs   *float64 `json:"call_ms"`
	ReturnMs *float64 `json:"return_ms"`
	UntilMs  *float64 `json:"until_ms"`
	Fence    *uint64  `json:"fence"`
	Shared   bool     `json:"shared"`
	Permits  int      `json:"permits"`
	Slot     int      `json:"slot"`
}

func (o operation) String() string {
	text := fmt.Sprintf("%-7s  %s  %s  called %.3f  returned %.3f", o.Op, o.Client, o.Token, *o.CallMs, *o.ReturnMs)
	if o.UntilMs != nil {
		text += fmt.Sprintf("  until %.3f", *o.UntilMs)
	}
	if o.Fence != nil {
		text += fmt.Sprintf("  fence %d", *o.Fence)
	}
	if o.Shared {
		text += "  shared"
	}
	if o.Permits > 0 {
		text += fmt.Sprintf("  slot %d of %d", o.Slot, o.Permits)
	}
	return text
}

// Why it is not an operation.
func (o operation) problem() error {
	switch {
	case o.Op != "acquire" && o.Op != "hold" && o.Op != "release" && o.Op != "lose":
		return fmt.Errorf("op is %q", o.Op)
	case o.Resource == "" || o.Client == "" || o.Token == "":
		return errors.New("resource, client or token is missing")
	case o.CallMs == nil || o.ReturnMs == nil:
		return errors.New("call_ms or return_ms is missing")
	case *o.ReturnMs < *o.CallMs:
		return errors.New("return_ms is before call_ms")
	case (o.Op == "acquire" || o.Op == "hold") && o.UntilMs == nil:
		return errors.New("until_ms is missing")
	}
	return nil
}

// ---- the model

// A hold: its token, until when it is valid, whether others may hold the lock beside it, and how many permits there are.
type hold struct {
	token   string
	untilMs float64
	shared  bool
	permits int
	slot    int
}

// A lock: who holds it, by token, which is one in each slot or only such as share it; and the last fencing token
// granted.
type lock struct {
	holds []hold
	fence uint64
}

func (l lock) place(token string) int {
	return sort.Search(len(l.holds), func(i int) bool { return l.holds[i].token >= token })
}

// The same with other holds from that place on: `taken` of them are replaced.
func (l lock) with(place, taken int, more ...hold) lock {
	holds := append(append([]hold{}, l.holds[:place]...), more...)
	return lock{append(holds, l.holds[place+taken:]...), l.fence}
}

// Permits are counted by themselves, so that a wrong slot hides no holder.
func (l lock) admits(o operation) bool {
	permits := o.Permits
	for _, one := range l.holds {
		if one.token == o.Token || (one.slot == o.Slot && !(one.shared && o.Shared)) {
			return false
		}
		if one.permits > permits {
			permits = one.permits
		}
	}
	return (permits == 0 || len(l.holds) < permits) && (o.Fence == nil || *o.Fence > l.fence)
}

// Whether a lock allows the operation, and its state afterwards. A hold must end by the end of its validity.
func (l lock) after(o operation) (bool, lock) {
	place := l.place(o.Token)
	if o.Op == "acquire" {
		if !l.admits(o) {
			return false, l
		}
		l = l.with(place, 0, hold{o.Token, *o.UntilMs, o.Shared, o.Permits, o.Slot})
		if o.Fence != nil {
			l.fence = *o.Fence
		}
		return true, l
	}
	if place == len(l.holds) || l.holds[place].token != o.Token {
		return false, l
	}
	one := l.holds[place]
	if o.Op == "hold" {
		one.untilMs = math.Max(one.untilMs, *o.UntilMs)
		return true, l.with(place, 1, one)
	}
	return *o.CallMs <= one.untilMs, l.with(place, 1)
}

func (l lock) equals(other lock) bool {
	if l.fence != other.fence || len(l.holds) != len(other.holds) {
		return false
	}
	for i := range l.holds {
		if l.holds[i] != other.holds[i] {
			return false
		}
	}
	return true
}

var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		return groups(history, func(o operation) string { return o.Resource })
	},
	Init:  func() interface{} { return lock{} },
	Step:  func(state, input, _ interface{}) (bool, interface{}) { return state.(lock).after(input.(operation)) },
	Equal: func(one, other interface{}) bool { return one.(lock).equals(other.(lock)) },
}

func allowed(history []porcupine.Operation) bool { return porcupine.CheckOperations(model, history) }

// ---- the offending part

// The operations grouped by key, in the order in which the keys first appear.
func groups(history []porcupine.Operation, key func(operation) string) [][]porcupine.Operation {
	var made [][]porcupine.Operation
	places := map[string]int{}
	for _, one := range history {
		name := key(one.Input.(operation))
		place, known := places[name]
		if !known {
			place = len(made)
			places[name] = place
			made = append(made, nil)
		}
		made[place] = append(made[place], one)
	}
	return made
}

func joined(holds [][]porcupine.Operation) []porcupine.Operation {
	var history []porcupine.Operation
	for _, hold := range holds {
		history = append(history, hold...)
	}
	return history
}

// A smallest set of holds that is refused by itself. Searching is sound because an allowed history stays allowed when
// one of its holds is taken out.
func contradiction(history []porcupine.Operation) []porcupine.Operation {
	holds := groups(history, func(o operation) string { return o.Token })
	holds = holds[:1+sort.Search(len(holds), func(i int) bool { return !allowed(joined(holds[:i+1])) })]
	holds = holds[sort.Search(len(holds), func(i int) bool { return allowed(joined(holds[i+1:])) }):]
	for i := len(holds) - 1; i >= 0; i-- {
		without := append(append([][]porcupine.Operation{}, holds[:i]...), holds[i+1:]...)
		if !allowed(joined(without)) {
			holds = without
		}
	}
	return joined(holds)
}

func printOffending(history []porcupine.Operation) {
	for _, some := range model.Partition(history) {
		if allowed(some) {
			continue
		}
		fmt.Printf("%s: no lock allows these operations:\n", some[0].Input.(operation).Resource)
		for _, one := range contradiction(some) {
			fmt.Println("  " + one.Input.(operation).String())
		}
	}
}

// ---- reading

func ns(ms float64) int64 { return int64(math.Round(ms * 1e6)) }

func parse(line []byte) (operation, error) {
	var one operation
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&one); err != nil {
		return one, err
	}
	return one, one.problem()
}

// The history in the order of the calls.
func read(file io.Reader) ([]porcupine.Operation, error) {
	var history []porcupine.Operation
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longestLine)
	for number := 1; lines.Scan(); number++ {
		one, err := parse(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		history = append(history, porcupine.Operation{Input: one, Call: ns(*one.CallMs), Return: ns(*one.ReturnMs)})
	}
	if len(history) == 0 && lines.Err() == nil {
		return nil, errors.New("no operations")
	}
	sort.SliceStable(history, func(i, j int) bool { return history[i].Call < history[j].Call })
	return history, lines.Err()
}

func readFile(path string) ([]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return read(file)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: judge HISTORY")
		os.Exit(2)
	}
	history, err := readFile(os.Args[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "judge: %s: %v\n", os.Args[1], err)
		os.Exit(2)
	}
	if !allowed(history) {
		printOffending(history)
		os.Exit(1)
	}
	fmt.Printf("judge: a lock allows all %d operations\n", len(history))
}
