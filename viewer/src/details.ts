// What is known about the thing that is selected.

import { deviceChip } from './charts';
import type { ChainLink } from './data';
import { h, replace } from './dom';
import { bytesText, duration, flopsText, oneLine, percentText, plural, timeText, timeUnderTitle, titleOfTimes, trimmed } from './format';
import { linkTo } from './link';
import type { Selection, State } from './state';

const SHOWN = 12; // inputs and outputs
const DOUBLE_CLICK = 300; // milliseconds within which a second click comes

export class DetailsPanel {
  readonly element = h('aside', { class: 'details', id: 'details', 'aria-label': 'Details of the selection', tabindex: 0, hidden: true });
  private opening = 0; // a timer

  constructor(private readonly state: State) {
    state.onChange((change) => {
      if (change === 'selection' || change === 'plan' || change === 'grouping' || change === 'difference') this.build();
    });
    this.build();
  }

  private build() {
    const { selection } = this.state;
    this.element.scrollTop = 0;
    this.show(selection);
    if (!selection) return replace(this.element);
    switch (selection.kind) {
      case 'op': return replace(this.element, ...this.op(selection.index));
      case 'transfer': return replace(this.element, ...this.transfer(selection.index));
      case 'call': return replace(this.element, ...this.call(selection.index));
      case 'group': return replace(this.element, ...this.group(selection.index));
    }
  }

  // Without a selection its width belongs to the graph. A group may be clicked twice, to unfold it:
  // until then the graph stays as wide as it is.
  private show(selection: Selection | null) {
    clearTimeout(this.opening);
    if (!selection || selection.kind !== 'group' || !this.element.hidden) this.element.hidden = !selection;
    else this.opening = window.setTimeout(() => { this.element.hidden = false; }, DOUBLE_CLICK);
  }

  private facts(rows: [string, Node | string | null][]): HTMLElement {
    return h('dl', {}, ...rows.filter(([, value]) => value !== null)
      .flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
  }

  private opLink(op: number): HTMLElement {
    return h('button', { type: 'button', class: 'link', click: () => this.state.select({ kind: 'op', index: op }, true) },
             oneLine(this.state.report.ops.name[op], 48));
  }

  private op(op: number): Node[] {
    const { report, currentPlan: plan } = this.state;
    const { unit } = report.problem;
    const device = plan.placement[op];
    const stage = (plan.stages ?? []).findIndex(({ ops }) => ops.includes(op));
    const call = (plan.calls ?? []).findIndex(({ ops }) => ops.includes(op));
    const timed = plan.start && call < 0;
    return [
      h('h3', { class: 'name' }, report.ops.name[op]),
      this.facts([
        ['Type', report.ops.types[report.ops.type[op]] ? oneLine(report.ops.types[report.ops.type[op]]) : null],
        ['Model', report.problem.models.length > 1 ? oneLine(report.problem.models[report.ops.model[op]].name) : null],
        ['Pass', report.ops.backward[op] ? 'backward' : null],
        ['Device', deviceChip(report, device)],
        ['Holds', this.holds(op, device)],
        ['Runs', timed ? `${trimmed(plan.start![op])} to ${timeText(plan.end![op], unit)}` : null],
        ['Stage', stage >= 0 ? `${stage + 1} of ${plan.stages!.length}` : null],
        ['Call', call >= 0 ? h('button', { type: 'button', class: 'link', click: () => this.state.select({ kind: 'call', index: call }, true) },
                               `${trimmed(plan.calls![call].start)} to ${timeText(plan.calls![call].end, unit)}`) : null],
        ['Work', report.ops.flops[op] > 0 ? flopsText(report.ops.flops[op]) : null],
        ['Memory', bytesText(report.ops.memory[op])],
      ]),
      this.reopen(),
      h('h4', {}, 'Why here'),
      this.reasons(op, device),
      h('h4', {}, 'On each device'),
      this.choices(op, device),
      ...this.tensors('Reads', this.state.inputs[op], op),
      ...this.tensors('Makes', this.state.outputs[op], op),
    ];
  }

  private holds(op: number, device: number): string | null {
    const { resources } = this.state.report;
    const held = [...this.state.held(op, device)].map(([resource, amount]) => {
      const { name, capacity } = resources[resource];
      return capacity === 1 && amount === 1 ? oneLine(name, 40) : `${trimmed(amount, 3)} of ${trimmed(capacity, 3)} ${oneLine(name, 40)}`;
    });
    return held.join(', ') || null;
  }

  // Only what was worked out: rules that bind the op, its times, its transfers, its neighbours in
  // time.
  private reasons(op: number, device: number): HTMLElement {
    const { report, currentPlan: plan } = this.state;
    const { unit } = report.problem;
    const list: (Node | string)[] = [];
    const time = (where: number) => report.ops.time[op * report.kinds.length + report.devices[where].kind];
    const able = report.devices.map((_, index) => index).filter((index) => time(index) !== null);
    if (report.ops.pin[op] >= 0) list.push(`Pinned to ${oneLine(report.devices[report.ops.pin[op]].name, 40)}.`);
    if (able.length < report.devices.length) list.push(`${plural(able.length, 'device')} of ${report.devices.length} can run it.`);
    const together = report.ops.colocated.map((group, other) => (group === report.ops.colocated[op] && other !== op ? other : -1)).filter((other) => other >= 0);
    if (together.length > 0) {
      list.push(h('span', {}, `Must share its device with ${plural(together.length, 'op')}: `, this.opLink(together[0]), together.length > 1 ? ', …' : ''));
    }
    const fastest = Math.min(...able.map((index) => time(index)!));
    const here = time(device) ?? 0;
    if (able.some((index) => time(index) !== here)) {
      list.push(here <= fastest ? `No device runs it faster than here (${timeText(here, unit)}).`
                                : `It runs in ${timeText(here, unit)} here; the fastest device takes ${timeText(fastest, unit)}.`);
    }
    const near = (tensors: number[], ends: (tensor: number) => number[]) => {
      const ops = tensors.flatMap(ends);
      return [ops.filter((other) => plan.placement[other] === device).length, ops.length];
    };
    const [inHere, inAll] = near(this.state.inputs[op], (tensor) => [report.tensors.from[tensor]]);
    const [outHere, outAll] = near(this.state.outputs[op], (tensor) => report.tensors.to[tensor]);
    if (inAll + outAll > 0) list.push(`On this device already: ${inHere} of the ${inAll} ops it reads from, ${outHere} of the ${outAll} that read it.`);
    const waits = this.wait(op);
    if (waits) list.push(waits);
    const best = this.bestMove(op, device);
    if (best) list.push(best);
    return h('ul', { class: 'reasons' }, ...list.map((reason) => h('li', {}, reason)));
  }

  private wait(op: number): string | null {
    const { currentPlan: plan } = this.state;
    const link = plan.critical.find(([kind, index]: ChainLink) => kind === 'op' && index === op);
    if (!link) return null;
    const reason = { first: 'it waits for nothing', input: 'it starts when its input arrives',
                     device: 'it waits for the device', resource: 'it waits for resources that another device holds',
                     port: 'it waits for a port' }[link[2]];
    return `On the critical path: ${reason}.`;
  }

  private moveValue(op: number, device: number): number | string | null {
    const { report, currentPlan: plan } = this.state;
    return plan.moves ? plan.moves[report.ops.colocated[op] * report.devices.length + device] : null;
  }

  private bestMove(op: number, home: number): string | null {
    const { report, currentPlan: plan } = this.state;
    if (!plan.moves || plan.value === null) return null;
    const values = report.devices.map((_, device) => (device === home ? null : this.moveValue(op, device)))
      .filter((value): value is number => typeof value === 'number');
    if (values.length === 0) return report.devices.length > 1 ? 'No other device can take it in this plan.' : null;
    const least = Math.min(...values);
    const change = (least - plan.value) / plan.value;
    if (Math.abs(change) < 1e-9) return 'Moving it to another device can leave the value as it is.';
    return change > 0 ? `Moving it alone makes the plan at least ${percentText(change)} worse.`
                      : `Moving it alone would make the plan ${percentText(-change)} better.`;
  }

  private choices(op: number, home: number): HTMLElement {
    const { report, currentPlan: plan } = this.state;
    const { unit } = report.problem;
    const verdicts: Record<string, string> = { unsupported: 'not allowed', memory: 'does not fit', rule: 'breaks a rule' };
    const rows = report.devices.map((_, device) => {
      const time = report.ops.time[op * report.kinds.length + report.devices[device].kind];
      const value = this.moveValue(op, device);
      const moved = device === home ? 'here' : typeof value === 'string' ? verdicts[value] ?? '–' : value === null ? '–' : this.delta(value);
      return h('tr', device === home ? { 'aria-current': 'true' } : {},
               h('th', { scope: 'row' }, deviceChip(report, device)),
               h('td', { class: 'number' }, time === null ? 'not supported' : timeUnderTitle(time, unit)),
               plan.moves ? h('td', { class: 'number' }, moved) : null);
    });
    return h('div', {},
             h('table', { class: 'grid small' },
               h('thead', {}, h('tr', {}, h('th', {}, 'Device'), h('th', { class: 'number' }, titleOfTimes('Time', unit)),
                                plan.moves ? h('th', { class: 'number' }, 'Plan if moved') : null)),
               h('tbody', {}, ...rows)));
  }

  private delta(value: number): string {
    const now = this.state.currentPlan.value ?? 0;
    const change = now > 0 ? (value - now) / now : 0;
    return Math.abs(change) < 1e-9 ? '± 0 %' : `${change > 0 ? '+' : '−'}${trimmed(Math.abs(100 * change), 2)} %`;
  }

  private tensors(title: string, tensors: number[], op: number): Node[] {
    const { report, currentPlan: plan } = this.state;
    if (tensors.length === 0) return [];
    const others = tensors.flatMap((tensor) => (report.tensors.from[tensor] === op ? report.tensors.to[tensor] : [report.tensors.from[tensor]])
      .map((other) => ({ tensor, other })));
    const items = others.slice(0, SHOWN).map(({ tensor, other }) => {
      const cut = plan.placement[other] !== plan.placement[op];
      return h('li', {}, deviceDot(report, plan.placement[other]), this.opLink(other),
               h('span', { class: cut ? 'cut-note' : 'quiet' }, ` ${[...this.sizes(tensor), cut ? 'cut' : ''].filter(Boolean).join(', ')}`));
    });
    return [h('h4', {}, title), h('ul', { class: 'plain' }, ...items,
              others.length > SHOWN ? h('li', { class: 'quiet' }, `and ${others.length - SHOWN} more`) : null)];
  }

  // Shape and bytes of a tensor, as far as they are known.
  private sizes(tensor: number): string[] {
    const { bytes, shape } = this.state.report.tensors;
    return [oneLine(shape[tensor], 40), bytes[tensor] > 0 ? bytesText(bytes[tensor]) : ''].filter(Boolean);
  }

  private reopen(): HTMLElement {
    return h('p', {}, h('a', { class: 'quiet', href: linkTo(this.state), id: 'link' }, 'Link to this selection'));
  }

  private transfer(index: number): Node[] {
    const { report, currentPlan: plan } = this.state;
    const { tensor, from, to, start, end } = plan.transfers;
    const id = tensor[index];
    const name = (device: number) => (device < 0 ? 'host memory' : deviceChip(report, device));
    return [
      h('h3', { class: 'name' }, report.tensors.name[id] || `Output of ${oneLine(report.ops.name[report.tensors.from[id]], 200)}`),
      this.facts([
        ['From', name(from[index])],
        ['To', name(to[index])],
        ['Moves', `${trimmed(start[index])} to ${timeText(end[index], report.problem.unit)}`],
        ['Takes', timeText(duration(start[index], end[index]), report.problem.unit)],
        ['Size', this.sizes(id).join(', ') || null],
        ['Made by', this.opLink(report.tensors.from[id])],
      ]),
      this.reopen(),
      h('h4', {}, 'Read by'),
      h('ul', { class: 'plain' }, ...report.tensors.to[id].slice(0, SHOWN).map((op) => h('li', {}, deviceDot(report, plan.placement[op]), this.opLink(op)))),
    ];
  }

  private call(index: number): Node[] {
    const { report, currentPlan: plan } = this.state;
    const call = plan.calls![index];
    return [
      h('h3', {}, `Call of ${oneLine(report.devices[call.device].name, 40)}`),
      this.facts([
        ['Device', deviceChip(report, call.device)],
        ['Runs', `${trimmed(call.start)} to ${timeText(call.end, report.problem.unit)}`],
        ['Ops', String(call.ops.length)],
      ]),
      this.reopen(),
      h('ul', { class: 'plain' }, ...call.ops.slice(0, 100).map((op) => h('li', {}, this.opLink(op)))),
    ];
  }

  private group(index: number): Node[] {
    const { report, currentPlan: plan } = this.state;
    const members = this.state.members(index);
    const { unit } = report.problem;
    const time = members.reduce((sum, op) =>
      sum + (report.ops.time[op * report.kinds.length + report.devices[plan.placement[op]].kind] ?? 0), 0);
    const flops = members.reduce((sum, op) => sum + report.ops.flops[op], 0);
    const counts = report.devices.map((_, device) => members.filter((op) => plan.placement[op] === device).length);
    const folded = this.state.folded.has(index);
    return [
      h('h3', { class: 'name' }, this.state.currentGrouping.groups[index].name),
      this.facts([
        ['Ops', String(members.length)],
        ['Time', `${timeText(time, unit)} in all`],
        ['Work', flops > 0 ? flopsText(flops) : null],
        ['Memory', bytesText(members.reduce((sum, op) => sum + report.ops.memory[op], 0))],
      ]),
      this.reopen(),
      h('p', {}, h('button', { type: 'button', click: () => { this.state.setFolded(index, !folded); this.state.select({ kind: 'group', index }); } },
                   folded ? 'Unfold' : 'Fold')),
      h('ul', { class: 'plain' }, ...counts.map((count, device) =>
        count > 0 ? h('li', {}, deviceChip(report, device), ` ${plural(count, 'op')}`) : null)),
      h('h4', {}, 'Ops'),
      h('ul', { class: 'plain' }, ...members.slice(0, 100).map((op) => h('li', {}, deviceDot(report, plan.placement[op]), this.opLink(op)))),
    ];
  }
}

function deviceDot(report: State['report'], device: number): HTMLElement {
  const chip = deviceChip(report, device);
  const dot = chip.firstElementChild as HTMLElement;
  dot.title = oneLine(report.devices[device].name, 40);
  return dot;
}

// What the colours and lines of the graph mean, in a row below it.
export function legendOf({ report }: State): HTMLElement {
  const facts = ({ kind, name, memory }: (typeof report.devices)[number]) =>
    [report.kinds[kind] === name ? '' : oneLine(report.kinds[kind], 24), memory === null ? 'no memory limit' : bytesText(memory)];
  const mark = (kind: string, text: string) => h('li', { class: 'marks' }, h('i', { class: `mark ${kind}` }), text);
  return h('ul', { class: 'legend', 'aria-label': 'Legend' },
    ...report.devices.map((device, index) =>
      h('li', {}, deviceChip(report, index), h('span', { class: 'quiet' }, ` ${facts(device).filter(Boolean).join(', ')}`))),
    mark('critical', 'critical path'), mark('cut', 'edge cut between devices'), mark('selected', 'selected'),
    report.plans.length > 1 ? mark('differs', 'placed differently by the compared plan') : null,
    h('li', { class: 'quiet' }, 'Click an op or a bar in the timeline, or press / and type a name.'));
}
