// The JSON object that src/report/report_data.cpp writes into the page.

export interface Device {
  name: string;
  kind: number;
  space: number;
  memory: number | null; // of its space
  lanes: number;
  host: boolean;
  uses: number[]; // resource, amount, resource, amount, …
}

export interface DeviceWork {
  ops: number;
  compute: number;
  in: number;
  out: number;
  busy: number;
  resident: number;
  peak: number;
  steps: number[]; // time, bytes, time, bytes, …
}

export type ChainLink = [kind: 'op' | 'transfer' | 'call', index: number,
                         reason: 'first' | 'input' | 'device' | 'resource' | 'port'];

// Times in the problem's unit, as everywhere.
export interface Measured {
  valid: boolean; // others did not take the cores in most samples, and the rest are near each other
  median: number | null;
  low: number | null; // first and last decile
  high: number | null;
  kept: number;
  rejected: number;
}

export interface Run {
  measured: Measured;
  interrupted: boolean;
  completions: { name: string; measured: Measured }[]; // by model; schedules only
  segments: { device: string; ops: number; first: number; last: number; predicted: number; measured: Measured }[];
  events: { device: number; segment: number; sample: number; start: number; end: number }[];
  baselines: { name: string; latency: Measured; total_completion: Measured | null; per_second: number | null; speedup: number | null }[];
  outputs: { equal: boolean; difference: number | null; precision: string | null; accuracy: string } | null; // null: not compared
}

export interface Plan {
  label: string;
  objective: 'throughput' | 'call-latency' | 'latency' | 'total-completion';
  rules: Record<string, string | number | boolean>;
  single: { device: number; value: number } | null; // the best plan on one device
  story: { limit: string; help: string };
  planner: string;
  status: string;
  value: number | null;
  bound: number | null;
  gap: number | null;
  method: string;
  seconds: number;
  settings: Record<string, string>;
  placement: number[];
  start?: number[];
  end?: number[];
  calls?: { device: number; start: number; end: number; ops: number[] }[];
  stages?: { devices: number[]; load: number; ops: number[] }[];
  transfers: { tensor: number[]; from: number[]; to: number[]; start: number[]; end: number[] };
  devices: DeviceWork[];
  resources: number[]; // how long each is held: time x amount / capacity
  critical: ChainLink[];
  moves: (number | string)[] | null; // colocation group x device: value, or why not
  samples?: { device: number; stage: number; sample: number; start: number; end: number }[]; // predicted; pipelines only
  run: Run | null; // on the real devices
}

export interface Grouping {
  name: string;
  framed: boolean;
  plan?: number; // only for this plan
  groups: { name: string; layer: number; width: number; height: number }[];
  of: number[];
  x: number[];
  y: number[];
  bends: number[][]; // from, to, x, y, x, y, …
}

export interface Report {
  program: string;
  problem: {
    name: string;
    unit: string;
    interconnect: 'host' | 'links';
    costs: 'stated' | 'measured' | 'estimated' | 'disturbed';
    caution: string; // about the costs; mostly empty
    error: { times: number; ratios: number } | null; // of estimates: a factor; a share
    models: { name: string; arrival: number; weight: number }[];
    edges: number;
  };
  kinds: string[];
  devices: Device[];
  spaces: string[]; // memory spaces; most have one device
  resources: { name: string; capacity: number }[];
  ops: {
    name: string[];
    types: string[];
    type: number[];
    model: number[];
    memory: number[];
    pin: number[];
    backward: number[];
    colocated: number[];
    time: (number | null)[]; // op x kind
    flops: number[];
    share: number[]; // op x kind, of what its device uses; empty: all of it
  };
  tensors: { from: number[]; to: number[][]; bytes: number[]; name: string[]; shape: string[] };
  node: { width: number; height: number };
  groupings: Grouping[];
  plans: Plan[];
}

export function readReport(): Report {
  return JSON.parse(document.getElementById('data')!.textContent!) as Report;
}
