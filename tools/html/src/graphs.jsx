// SPDX-License-Identifier: Apache-2.0
// The views that are drawn: flame graph, callers and callees of a function, time line.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Flame } from "./flame.js";
import { amount, percent } from "./format.js";
import { lookOf } from "./look.js";
import { Details, Note, Tip } from "./parts.jsx";
import { Timeline, duration, lanes } from "./timeline.js";
import { calleesTree, callersTree, findNode } from "./tree.js";

const ARROWS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
const RARE_US = 10000; // between samples of an unknown rate

// What a graph has of the settings: its colours.
function useLook(model, tree) {
  const { profile, state, dark, hues, found, foundLabels } = model;
  return useMemo(
    () => tree && lookOf({ profile, tree, color: state.color, dark, hues, found, foundLabels: foundLabels(tree) }),
    [tree, state.color, dark, hues, found],
  );
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
  useEffect(() => {
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
  useEffect(() => flame.current.show({ tree, flame: shape === "flame", look, zoomed, selected: shown }), [tree, shape, look, zoomed, shown]);
  if (keys)
    keys.current = (e) => {
      if (ARROWS.includes(e.key)) {
        const next = flame.current.neighbour(e.key);
        if (next >= 0) {
          setSelected(next);
          flame.current.reveal(next);
        }
      } else if (e.key === "Enter" && shown >= 0) onZoom(shown);
      else if (e.key === "Escape" && zoomed) onZoom(0);
      else if (e.key === "Escape" && shown >= 0) setSelected(-1);
      else return false;
      return true;
    };
  return (
    <div class="graph" data-testid={name}>
      <div class="host" ref={host} tabIndex={0} role="img" aria-label={`${name}: ${tree.count - 1} frames; arrow keys move, enter zooms`} />
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

export function GraphView({ model, keys }) {
  const [zoomed, zoom] = useZoom(model, model.tree);
  return <Graph model={model} tree={model.tree} shape={model.state.shape} keys={keys} zoomed={zoomed} onZoom={zoom} name="flame graph" />;
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
          "What was running, at the first row, and its callers, one row further each. Choose a function in the table or in a graph's details for its callers alone."
        ) : (
          <>
            Callers of <b>{tree.keys.label(fn)}</b> <span class="place">{tree.keys.place(fn)}</span>, which is on the stack of{" "}
            {percent(profile.total ? total / profile.total : 0)} of all samples ({amount(profile, total)}).{" "}
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

export function TimeView({ model, keys }) {
  const { profile, bareTree: tree, state, set } = model;
  const host = useRef();
  const line = useRef();
  const [selected, setSelected] = useState(-1);
  const [tip, setTip] = useState(null);
  const look = useLook(model, tree);
  const found = useMemo(() => lanes(profile, tree), [profile, tree]);
  const period = useMemo(() => {
    if (profile.measure.period_ns) return profile.measure.period_ns / 1000;
    const times = found[0]?.times ?? [];
    const gaps = times.slice(1).map((t, i) => t - times[i]).sort((x, y) => x - y);
    return gaps.length ? gaps[gaps.length >> 1] : RARE_US;
  }, [profile, found]);
  const latest = useRef();
  latest.current = { tree, profile, set };
  useEffect(() => {
    if (!host.current) return undefined;
    line.current = new Timeline(host.current, {
      select: (node) => {
        setTip(null);
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
            more: [["here", `${duration(box.to - box.from)}, from ${duration(box.from)}`]],
          },
        ),
    });
    host.current.timeline = line.current;
    return () => line.current.destroy();
  }, [found.length > 0]);
  useEffect(() => setSelected(-1), [tree]);
  const shown = selected < tree.count ? selected : -1;
  useEffect(() => {
    const view = state.t ? state.t.split("-").map(Number) : null;
    line.current?.show({ tree, lanes: found, period, look, view, selected: shown });
  }, [tree, found, look, shown, state.t]);
  if (!found.length) {
    return profile.eventTime.length ? (
      <Note title="Nothing here">No sample passes the filters.</Note>
    ) : (
      <Note title="No times were kept">
        This profile tells how often a stack was seen, not when. Recording to a report keeps the times (pybpf -o report.html); a profile
        that was saved or merged without them, or a comparison of two, has none.
      </Note>
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
    steps[e.key]?.();
    return e.key in steps;
  };
  return (
    <div class="graph" data-testid="time line">
      <div class="corner">
        <button onClick={() => line.current.zoom(0.6)} aria-label="Zoom in">
          +
        </button>
        <button onClick={() => line.current.zoom(1 / 0.6)} aria-label="Zoom out">
          {"\u2212"}
        </button>
        <button onClick={() => line.current.reset()}>All</button>
      </div>
      <div class="host" ref={host} tabIndex={0} role="img" aria-label="time line: a lane for each thread" />
      <Tip tip={tip} />
      {shown >= 0 && <Details profile={profile} tree={tree} node={shown} set={set} close={() => setSelected(-1)} />}
    </div>
  );
}
