// SPDX-License-Identifier: Apache-2.0
// The views that are drawn: flame graph, callers and callees of a function, time line.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { Flame } from "./flame.js";
import { groupWords } from "./filters.jsx";
import { amount, counted, isSamples, isTime, number, percent } from "./format.js";
import { lookOf, nodeLabel, stateName } from "./look.js";
import { Hottest } from "./hotspots.jsx";
import { Details, Note, Said, Tip, spoken } from "./parts.jsx";
import { Strips } from "./strips.js";
import { TableView, useMedia } from "./table.jsx";
import { AXIS, Timeline, duration, lanes } from "./timeline.js";
import { calleesTree, callersTree, findNode } from "./tree.js";

const ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
const SCROLLS = ["PageUp", "PageDown", "Home", "End"];
const CALLERS = 6; // that are named beside a wait
const RARE_US = 10000; // between samples of an unknown rate
const MANY = 24; // groups side by side, most of which are too narrow for words

// What a graph has of the settings: its colours.
function useLook(model, tree) {
  const { profile, state, dark, hues, found, foundLabels } = model;
  return useMemo(
    () => tree && lookOf({ profile, tree, color: state.color, dark, hues, found, foundLabels: foundLabels(tree) }),
    [tree, state.color, dark, hues, found],
  );
}

// Draws a surface whole while the page is printed.
function usePrinted(model, drawn, header) {
  useLayoutEffect(() => (model.printing ? drawn.current?.surface.print(header) : undefined), [model.printing]);
}

// keys: a ref to what handles keys while this graph is shown.
export function Graph({ model, tree, shape, keys, zoomed, onZoom, name }) {
  const { profile, set } = model;
  const host = useRef();
  const flame = useRef();
  const [selected, setSelected] = useState(-1);
  const [tip, setTip] = useState(null);
  const look = useLook(model, tree);
  const latest = useRef();
  latest.current = { tree, onZoom, profile };
  useLayoutEffect(() => {
    flame.current = new Flame(host.current, {
      select: (node) => {
        setTip(null);
        setSelected(node);
      },
      zoom: (node) => latest.current.onZoom(node),
      hover: (node, e) => setTip(node >= 0 ? { ...latest.current, node, x: e.clientX, y: e.clientY } : null),
    });
    host.current.flame = flame.current;
    return () => flame.current.destroy();
  }, []);
  useEffect(() => {
    setSelected(-1);
    setTip(null);
  }, [tree]);
  const shown = selected < tree.count ? selected : -1;
  useLayoutEffect(() => flame.current.show({ tree, flame: shape === "flame", look, zoomed, selected: shown }), [tree, shape, look, zoomed, shown]);
  usePrinted(model, flame);
  const press = (e) => {
    if (ARROWS.includes(e.key)) {
      const next = flame.current.neighbour(e.key);
      if (next >= 0) {
        setSelected(next);
        flame.current.reveal(next);
      }
    } else if (SCROLLS.includes(e.key)) flame.current.scroll(e.key);
    else if (e.key === "Enter" && shown >= 0) onZoom(shown);
    else if (e.key === "Escape" && zoomed) onZoom(0);
    else if (e.key === "Escape" && shown >= 0) setSelected(-1);
    else return false;
    return true;
  };
  if (keys) keys.current = press;
  // With the focus here it is this graph that has the keys, where two are shown.
  const own = (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || !press(e)) return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div class="graph" data-testid={name}>
      <div
        class="host"
        ref={host}
        tabIndex={0}
        role="application"
        aria-roledescription="graph"
        aria-label={`${name}: ${tree.count - 1} frames in ${tree.maxDepth + 1} rows; arrow keys move, enter zooms, escape goes back`}
        onKeyDown={own}
      />
      <Said>
        {shown >= 0 && spoken(profile, tree, shown)}
        {zoomed > 0 && `. Zoomed to ${nodeLabel(tree, zoomed)}.`}
      </Said>
      <Tip tip={tip} />
      {shown >= 0 && <Details profile={profile} tree={tree} node={shown} set={set} close={() => setSelected(-1)} />}
    </div>
  );
}

// Zooming that the address remembers, by the stack that made the node.
export function useZoom(model, tree) {
  const { state, set } = model;
  const zoomed = useMemo(() => {
    const [group, stack, depth] = state.zoom.split(".").map(Number);
    return state.zoom ? Math.max(0, findNode(tree, group, stack, depth)) : 0;
  }, [tree, state.zoom]);
  const zoom = (node) => set({ zoom: node > 0 ? `${tree.group[node]}.${tree.stack[node]}.${tree.depth[node]}` : "" });
  return [zoomed, zoom];
}

// How many groups there are: of nested ones, a thread's in its process's, the inner ones.
const groupsOf = (tree) => tree.key.reduce((n, key, i) => n + (i > 0 && key < 0 && !(tree.key[i + 1] < 0 && tree.parent[i + 1] === i)), 0);

// Offers one graph of all, where there are many side by side.
function Crowd({ model }) {
  const { profile, tree, state, set } = model;
  const many = useMemo(() => groupsOf(tree), [tree]);
  if (many <= MANY || state.zoom) return null;
  return (
    <p class="lead" data-testid="crowd">
      {number(many)} groups side by side, by {groupWords(state.roots || profile.roots.join(","))}. <button onClick={() => set({ roots: "-" })}>Show as one</button>
    </p>
  );
}

export function GraphView({ model, keys }) {
  const [zoomed, zoom] = useZoom(model, model.tree);
  const wide = useMedia("(min-width: 1600px)");
  return (
    <div class="columns">
      <div class="column">
        <Hottest model={model} />
        <Crowd model={model} />
        <Graph model={model} tree={model.tree} shape={model.state.shape} keys={keys} zoomed={zoomed} onZoom={zoom} name="flame graph" />
      </div>
      {wide && (
        <aside class="beside" aria-label="Functions">
          <TableView model={model} beside />
        </aside>
      )}
    </div>
  );
}

export function CallersView({ model, keys }) {
  const { profile, tree, state, arrangement, set } = model;
  const fn = state.fn === "" ? -1 : Number(state.fn);
  const callers = useMemo(() => callersTree(tree, fn, arrangement), [tree, fn, arrangement]);
  const callees = useMemo(() => fn >= 0 && calleesTree(tree, fn, arrangement), [tree, fn, arrangement]);
  const [zoomed, zoom] = useZoom(model, callers);
  const [below, setBelow] = useState(0);
  useEffect(() => setBelow(0), [callees]);
  const total = callers.total[0];
  return (
    <div class="callers">
      <p class="lead">
        {fn < 0 ? (
          `${isSamples(profile) || isTime(profile) ? "What was running" : `The functions that had ${counted(profile)}`}, at the first row, and their callers, one row further each. Choose a function in the table or in a graph's details for its callers alone.`
        ) : (
          <>
            Callers of <b>{tree.keys.label(fn)}</b> <span class="place">{tree.keys.shortPlace(fn)}</span>, which is on the stack of{" "}
            {percent(tree.whole.total ? total / tree.whole.total : 0)} of the {counted(profile)} shown ({amount(profile, total)}).{" "}
            <button onClick={() => set({ fn: "" })}>All functions</button>
          </>
        )}
      </p>
      <Graph model={model} tree={callers} shape={fn >= 0 ? "flame" : state.shape} keys={keys} zoomed={zoomed} onZoom={zoom} name="callers" />
      {callees && (
        <>
          <p class="lead">What it calls</p>
          <Graph model={model} tree={callees} shape="icicle" zoomed={Math.min(below, callees.count - 1)} onZoom={setBelow} name="callees" />
        </>
      )}
    </div>
  );
}

// What a box of the time line is: how long, and with waits the state, and who called.
function boxFacts(profile, tree, { node, from, to }) {
  const here = ["here", `${duration(to - from)}, from ${duration(from)}`];
  if (!profile.intervals) return [here];
  const callers = [];
  for (let i = tree.parent[node]; i > 0 && callers.length < CALLERS; i = tree.parent[i]) callers.push(nodeLabel(tree, i));
  const tid = profile.wakerOf(tree.stack[node]);
  const waker = tid && profile.threads.find((thread) => thread.tid === tid);
  return [
    ["state", stateName(profile.stateOf(tree.stack[node]))],
    here,
    ...(waker ? [["ended by", waker.label]] : []),
    ...(callers.length ? [["in", callers.join(" \u2039 ")]] : []),
  ];
}

// Why a profile has no time line.
function Untimed({ profile }) {
  const waits = isTime(profile);
  const memory = profile.measure.unit === "bytes";
  return (
    <Note title="No times were kept">
      <p>
        This profile has one sum for each stack and not when it ran, so there is no time line and no range of time to choose.
        {profile.diff && " A comparison of two profiles has none."}
      </p>
      {waits && !profile.diff && <p>With --mode=gil and with --no-timestamps, it is not kept when a wait was.</p>}
      {memory && !profile.diff && <p>With --mode=memory, it is not kept when memory was touched.</p>}
      {!waits && !memory && !profile.diff && (
        <>
          <p>To get a time line, record the report itself or a saved profile, without --no-timestamps:</p>
          <pre>{"pybpf -p PID -d 30 -o report.html\n\npybpf -p PID -d 30 -o saved.pybpf\npybpf report saved.pybpf -o report.html"}</pre>
        </>
      )}
    </Note>
  );
}

export function TimeView({ model, keys }) {
  const { profile, bareTree: tree, state, set } = model;
  const host = useRef();
  const line = useRef();
  const [selected, setSelected] = useState(-1);
  const [tip, setTip] = useState(null);
  const [chosen, setChosen] = useState([]); // facts of what a key chose
  const look = useLook(model, tree);
  const found = useMemo(() => lanes(profile, tree), [profile, tree]);
  const period = useMemo(() => {
    if (profile.measure.period_ns) return profile.measure.period_ns / 1000;
    if (profile.intervals && Number(profile.facts.freq_hz)) return 1e6 / Number(profile.facts.freq_hz);
    const times = found[0]?.times ?? [];
    const gaps = times.slice(1).map((t, i) => t - times[i]).sort((x, y) => x - y);
    return gaps.length ? gaps[gaps.length >> 1] : RARE_US;
  }, [profile, found]);
  const latest = useRef();
  latest.current = { tree, profile, set };
  useLayoutEffect(() => {
    if (!host.current) return undefined;
    line.current = new (profile.intervals ? Strips : Timeline)(host.current, {
      select: (node) => {
        setTip(null);
        setChosen([]);
        setSelected(node);
      },
      view: (view) => latest.current.set({ t: view ? view.join("-") : "" }),
      hover: (box, e) =>
        setTip(
          box && {
            ...latest.current,
            node: box.node,
            x: e.clientX,
            y: e.clientY,
            more: boxFacts(profile, latest.current.tree, box),
          },
        ),
      chosen: (node, from, to) => {
        setSelected(node);
        setChosen(boxFacts(profile, latest.current.tree, { node, from, to }));
      },
    });
    host.current.timeline = line.current;
    return () => line.current.destroy();
  }, [found.length > 0]);
  useEffect(() => setSelected(-1), [tree]);
  const shown = selected < tree.count ? selected : -1;
  useLayoutEffect(() => {
    const view = state.t ? state.t.split("-").map(Number) : null;
    line.current?.show({ tree, lanes: found, period, look, view, selected: shown });
  }, [tree, found, look, shown, state.t]);
  usePrinted(model, line, AXIS);
  if (!found.length) {
    return profile.eventTime.length ? (
      <Note title="Nothing here">Nothing passes the filters.</Note>
    ) : (
      <Untimed profile={profile} />
    );
  }
  keys.current = (e) => {
    const steps = {
      ArrowLeft: () => line.current.pan(-0.2),
      ArrowRight: () => line.current.pan(0.2),
      "+": () => line.current.zoom(0.6),
      "=": () => line.current.zoom(0.6),
      "-": () => line.current.zoom(1 / 0.6),
      Escape: () => line.current.reset(),
    };
    if (profile.intervals) for (const key of ["ArrowUp", "ArrowDown", ",", "."]) steps[key] = () => line.current.choose(key);
    steps[e.key]?.();
    return e.key in steps;
  };
  const kind = profile.intervals ? "a strip for each of" : "a lane for each of";
  const choosing = profile.intervals ? "up and down choose a thread, comma and full stop a wait; left and right" : "arrow keys";
  return (
    <div class="graph" data-testid="time line">
      {profile.intervals && profile.untimed > 0 && (
        <p class="lead" data-testid="undrawn">
          Of {amount(profile, profile.total)}, {amount(profile, profile.untimed)} are not drawn: waits shorter than 1 ms, and time whose moment was not kept. A thin line is
          time between the waits of a thread without a sample.
        </p>
      )}
      <div class="corner">
        <button onClick={() => line.current.zoom(0.6)} aria-label="Zoom in">
          +
        </button>
        <button onClick={() => line.current.zoom(1 / 0.6)} aria-label="Zoom out">
          {"\u2212"}
        </button>
        <button onClick={() => line.current.reset()}>All</button>
      </div>
      <div
        class="host"
        ref={host}
        tabIndex={0}
        role="application"
        aria-roledescription="time line"
        aria-label={`time line: ${kind} ${found.length} threads; ${choosing} move, plus and minus zoom, escape shows all. What is in view is the range that the other views show.`}
      />
      <Said>{shown >= 0 && [...chosen.map(([what, value]) => `${what} ${value}`), spoken(profile, tree, shown)].join(", ")}</Said>
      <Tip tip={tip} />
      {shown >= 0 && <Details profile={profile} tree={tree} node={shown} set={set} close={() => setSelected(-1)} more={chosen} />}
    </div>
  );
}
