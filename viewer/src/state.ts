// What the reader is looking at. Views read it and ask for changes; every change tells all views.

import type { Grouping, Plan, Report } from './data';

export type Selection =
  | { kind: 'op'; index: number }
  | { kind: 'transfer'; index: number }
  | { kind: 'call'; index: number }
  | { kind: 'group'; index: number };

export type Change = 'plan' | 'grouping' | 'fold' | 'selection' | 'difference' | 'theme';

// Graphs up to this size open with every op in sight.
const LARGEST_OPEN = 80;

export class State {
  plan = 0;
  grouping = 0;
  folded = new Set<number>();
  selection: Selection | null = null;
  other = -1; // the plan whose differences are marked; -1: none
  private readonly listeners: ((change: Change, reveal: boolean) => void)[] = [];
  private readonly foldedIn = new Map<number, Set<number>>();

  readonly inputs: number[][]; // by op: tensors
  readonly outputs: number[][];
  readonly groupsOfGrouping: number[][][];

  constructor(readonly report: Report) {
    const count = report.ops.name.length;
    this.inputs = Array.from({ length: count }, () => []);
    this.outputs = Array.from({ length: count }, () => []);
    report.tensors.from.forEach((from, tensor) => {
      this.outputs[from].push(tensor);
      for (const to of report.tensors.to[tensor]) this.inputs[to].push(tensor);
    });
    this.groupsOfGrouping = report.groupings.map((grouping) => {
      const members: number[][] = grouping.groups.map(() => []);
      grouping.of.forEach((group, op) => members[group].push(op));
      return members;
    });
    this.enter(this.firstGrouping(count));
  }

  get currentPlan(): Plan { return this.report.plans[this.plan]; }
  get currentGrouping(): Grouping { return this.report.groupings[this.grouping]; }
  members(group: number): number[] { return this.groupsOfGrouping[this.grouping][group]; }
  foldable(group: number): boolean {
    return this.currentGrouping.framed && this.members(group).length > 1;
  }

  // The name without what it shares with its group's, where the group is drawn round it.
  nameInGroup(op: number): string {
    const name = this.report.ops.name[op];
    const grouping = this.currentGrouping;
    const group = grouping.groups[grouping.of[op]].name;
    const inside = this.foldable(grouping.of[op]) && name.startsWith(group) && /^[/.]./.test(name.slice(group.length));
    return inside ? name.slice(group.length + 1) : name;
  }

  // What an op takes of each resource while it runs on a device.
  held(op: number, device: number): Map<number, number> {
    const { devices, kinds, ops } = this.report;
    const { uses, kind } = devices[device];
    const share = ops.share.length > 0 ? ops.share[op * kinds.length + kind] : 1;
    const amounts = new Map<number, number>();
    for (let i = 0; i < uses.length; i += 2) {
      if (uses[i + 1] * share > 0) amounts.set(uses[i], uses[i + 1] * share);
    }
    return amounts;
  }

  // Pipelines open as their stages, large graphs as blocks.
  private firstGrouping(ops: number): number {
    const named = (name: string) => this.groupingsOfPlan().find((index) => this.report.groupings[index].name === name);
    return named('stages') ?? (ops > LARGEST_OPEN ? named('blocks') : undefined) ?? 0;
  }

  // The groupings that this plan has.
  groupingsOfPlan(): number[] {
    return this.report.groupings
      .map((grouping, index) => (grouping.plan === undefined || grouping.plan === this.plan ? index : -1))
      .filter((index) => index >= 0);
  }

  onChange(listener: (change: Change, reveal: boolean) => void) { this.listeners.push(listener); }
  private tell(change: Change, reveal = false) {
    for (const listener of this.listeners) listener(change, reveal);
  }

  private enter(grouping: number) {
    this.grouping = grouping;
    let folded = this.foldedIn.get(grouping);
    if (!folded) {
      folded = new Set();
      const large = this.report.ops.name.length > LARGEST_OPEN;
      this.currentGrouping.groups.forEach((_, group) => {
        if (large && this.foldable(group)) folded!.add(group);
      });
      this.foldedIn.set(grouping, folded);
    }
    this.folded = folded;
  }

  setPlan(plan: number) {
    if (plan === this.plan) return;
    this.plan = plan;
    if (this.selection && this.selection.kind !== 'op') this.selection = null;
    if (!this.groupingsOfPlan().includes(this.grouping)) {
      const name = this.currentGrouping.name;
      const same = this.groupingsOfPlan().find((index) => this.report.groupings[index].name === name);
      this.enter(same ?? 0);
      this.tell('grouping');
    }
    if (this.other === plan) this.other = -1;
    this.tell('plan');
  }

  setGrouping(grouping: number) {
    this.enter(grouping);
    if (this.selection?.kind === 'group') this.selection = null;
    this.tell('grouping');
  }

  setFolded(group: number, folded: boolean) {
    if (!this.foldable(group)) return;
    if (folded) this.folded.add(group);
    else this.folded.delete(group);
    this.tell('fold');
  }

  setFolds(folded: Set<number>) {
    this.folded.clear();
    for (const group of folded) this.folded.add(group);
    this.tell('fold');
  }

  setAllFolded(folded: boolean) {
    this.folded.clear();
    if (folded) {
      this.currentGrouping.groups.forEach((_, group) => {
        if (this.foldable(group)) this.folded.add(group);
      });
    }
    this.tell('fold');
  }

  // `reveal`: bring it into sight, unfolding what hides it.
  select(selection: Selection | null, reveal = false) {
    this.selection = selection;
    if (reveal && selection?.kind === 'op') {
      const group = this.currentGrouping.of[selection.index];
      if (this.folded.delete(group)) this.tell('fold');
    }
    this.tell('selection', reveal);
  }

  setOther(plan: number) {
    this.other = plan;
    this.tell('difference');
  }

  themeChanged() { this.tell('theme'); }

  // Ops that the selection is about.
  selectedOps(): Set<number> {
    const selection = this.selection;
    if (!selection) return new Set();
    switch (selection.kind) {
      case 'op': return new Set([selection.index]);
      case 'call': return new Set(this.currentPlan.calls![selection.index].ops);
      case 'group': return new Set(this.members(selection.index));
      case 'transfer': {
        const tensor = this.currentPlan.transfers.tensor[selection.index];
        const to = this.currentPlan.transfers.to[selection.index];
        const readers = this.report.tensors.to[tensor].filter((op) =>
          to >= 0 ? this.currentPlan.placement[op] === to
                  : this.currentPlan.placement[op] !== this.currentPlan.transfers.from[selection.index]);
        return new Set([this.report.tensors.from[tensor], ...readers]);
      }
    }
  }
}
