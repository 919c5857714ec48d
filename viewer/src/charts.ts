// The charts that are small enough for elements: load and memory of each device, plans side by
// side.

import { scaleLinear } from 'd3-scale';
import type { Plan, Report } from './data';
import { h, replace, svg } from './dom';
import { bytesText, ifEstimated, oneLine, percentText, plural, secondsText, timeText, timeUnderTitle, titleOfTimes } from './format';
import { deviceBackground, deviceColour } from './palette';
import type { State } from './state';

const LEAST_SEEN = 1 / 200; // of the scale of memory

export function deviceChip(report: Report, device: number): HTMLElement {
  return h('span', { class: 'chip' },
           h('span', { class: 'swatch', style: `background: ${deviceBackground(device)}` }),
           oneLine(report.devices[device].name, 40));
}

function bar(share: number, className: string, title: string): HTMLElement {
  return h('span', { class: `bar ${className}`, title },
           h('span', { style: `width: ${Math.min(100, Math.max(0, share * 100)).toFixed(2)}%` }));
}

// The axis under bars that are `most` long, as wide as they are: a tick and its text at each of
// about `count` values.
function axis(most: number, count: number, text: (value: number) => string, className = ''): HTMLElement {
  const scale = scaleLinear([0, most], [0, 100]);
  // Texts near the ends stay inside.
  const shift = (at: number) => (at < 8 ? 0 : at > 92 ? -100 : -50);
  return h('span', { class: `axis ${className}` }, ...scale.ticks(count).map((tick) => {
    const at = scale(tick);
    return h('span', { class: 'tick', style: `left: ${at.toFixed(2)}%` }, h('span', { style: `transform: translateX(${shift(at)}%)` }, text(tick)));
  }));
}

// What of a pipeline is busy for longest: a stage's device, or a resource on which stages take
// turns. It sets the time per sample where it is never idle.
function busiestText(report: Report, plan: Plan): string {
  const all = [...report.devices.map(({ name }, i) => ({ name, busy: plan.devices[i].busy })),
               ...report.resources.map(({ name }, i) => ({ name, busy: plan.resources[i] }))];
  const value = plan.value || 1;
  const almostAll = 1 - 1e-6; // the page's numbers are rounded
  const most = all.reduce((best, each) => (each.busy * almostAll > best.busy ? each : best));
  const share = most.busy / value;
  return `The busiest, ${oneLine(most.name, 40)}, ${share >= almostAll ? 'sets it' : `is busy for ${percentText(share, 0)} of it`}.`;
}

// Of each device: compute, in, out and idle, as shares of the whole plan; of each resource that
// devices share, how long it is held.
export class LoadChart {
  readonly element = h('div', { class: 'loads' });

  constructor(private readonly state: State) {
    state.onChange((change) => { if (change === 'plan') this.build(); });
    this.build();
  }

  private build() {
    const { report, currentPlan: plan } = this.state;
    const { unit } = report.problem;
    const { objective } = plan;
    const ends = (plan.end ?? []).reduce((latest, end) => Math.max(latest, end), 0);
    const whole = (objective === 'throughput' ? plan.value : ends) || 1;
    const rows = report.devices.map((device, index) => {
      const work = plan.devices[index];
      const lanes = objective === 'throughput' || plan.calls ? 1 : device.lanes;
      const cell = (name: string, value: number, share: number) =>
        h('td', {}, bar(share, name, `${name}: ${timeText(value, unit)}`),
          h('span', { class: 'figure' }, percentText(share, 0).replace(' %', '')));
      const idle = Math.max(0, 1 - work.busy / (whole * lanes));
      return h('tr', {},
               h('th', { scope: 'row' }, deviceChip(report, index)),
               h('td', { class: 'number' }, String(work.ops)),
               cell('compute', work.compute, work.compute / (whole * lanes)),
               cell('in', work.in, work.in / whole),
               cell('out', work.out, work.out / whole),
               h('td', { class: 'number' }, percentText(idle, 0)));
    });
    replace(this.element,
            h('table', { class: 'grid' },
              h('thead', {}, h('tr', {}, h('th', {}, 'Device'), h('th', { class: 'number' }, 'Ops'),
                               h('th', {}, 'Compute, %'), h('th', {}, 'In, %'), h('th', {}, 'Out, %'),
                               h('th', { class: 'number' }, 'Idle'))),
              h('tbody', {}, ...rows),
              h('tfoot', {}, h('tr', {}, h('td', {}), h('td', {}), ...['', '', ''].map(() =>
                h('td', {}, axis(1, 1, (share) => `${100 * share}`, 'beside-figure'))), h('td', {})))),
            h('p', { class: 'quiet' },
              objective === 'throughput'
                ? `Shares of the time per sample, ${timeText(plan.value, unit)}. ${busiestText(report, plan)}`
                : `Shares of the whole, ${timeText(whole, unit)}. Transfers run beside compute unless a call makes them wait.`),
            report.resources.length > 0 ? this.resources(whole) : null);
  }

  // A device may be idle while another one holds what it needs.
  private resources(whole: number): HTMLElement {
    const { report, currentPlan: plan } = this.state;
    const rows = report.resources.map(({ name }, index) => {
      const load = plan.resources[index];
      const share = load / whole;
      return h('tr', {},
               h('th', { scope: 'row' }, h('span', { class: 'chip' }, oneLine(name, 40))),
               h('td', {}, bar(share, 'held', `held: ${timeText(load, report.problem.unit)}`),
                 h('span', { class: 'figure' }, percentText(share, 0).replace(' %', ''))),
               h('td', { class: 'number' }, percentText(Math.max(0, 1 - share), 0)));
    });
    return h('table', { class: 'grid resources' },
             h('thead', {}, h('tr', {}, h('th', {}, 'Shared'), h('th', {}, 'Held, %'), h('th', { class: 'number' }, 'Free'))),
             h('tbody', {}, ...rows),
             h('tfoot', {}, h('tr', {}, h('td', {}), h('td', {}, axis(1, 1, (share) => `${100 * share}`, 'beside-figure')), h('td', {}))));
  }
}

// Memory of each device, or of the devices that share one: over time for schedules, a bar for
// pipelines and calls.
export class MemoryChart {
  readonly element = h('div', { class: 'memory' });

  constructor(private readonly state: State) {
    state.onChange((change) => { if (change === 'plan') this.build(); });
    this.build();
  }

  private build() {
    const { report, currentPlan: plan } = this.state;
    const peakCounts = plan.rules.memory === 'peak';
    const timed = plan.devices.some((work) => work.steps.length > 0);
    const most = this.mostBytes();
    const spaces = report.spaces.map((_, space) => space);
    const peakOf = (space: number) => plan.devices[this.devicesOf(space)[0]].peak;
    const held = spaces.filter((space) => peakOf(space) > most * LEAST_SEEN);
    const others = spaces.filter((space) => !held.includes(space)).map((space) => `${this.spaceName(space)} ${bytesText(peakOf(space))}`);
    const beyond = report.devices.some(({ memory }) => memory !== null && memory > most);
    replace(this.element,
            h('div', { class: 'memory-grid' }, ...held.map((space) => this.spaceFigure(space, timed, most))),
            others.length > 0 ? h('p', { class: 'quiet' }, `Too little to draw: ${others.join(', ')}.`) : null,
            h('p', { class: 'quiet' },
              `All to one scale, up to ${bytesText(most)}. `,
              beyond ? 'Limits beyond it are not drawn. ' : '',
              plan.calls ? 'Weights of all calls; the limit holds for them.'
              : peakCounts ? 'The limit holds for weights and live tensors together.'
                         : 'The limit holds for weights alone here (memory: resident); live tensors are shown on top.'));
  }

  // The end of the scale for all devices. A limit far above what is used would press the pictures
  // flat.
  private mostBytes(): number {
    const { report, currentPlan: plan } = this.state;
    const peak = plan.devices.reduce((most, work) => Math.max(most, work.peak), 1);
    const limits = report.devices.map(({ memory }) => memory ?? 0).filter((limit) => limit <= 4 * peak);
    return Math.max(peak * 1.05, ...limits.map((limit) => limit * 1.02));
  }

  private devicesOf(space: number): number[] {
    const { devices } = this.state.report;
    return devices.map((_, device) => device).filter((device) => devices[device].space === space);
  }

  private spaceName(space: number): string {
    const { report } = this.state;
    const devices = this.devicesOf(space);
    return oneLine(devices.length > 1 ? report.spaces[space] : report.devices[devices[0]].name, 40);
  }

  private spaceFigure(space: number, timed: boolean, most: number): HTMLElement {
    const { report, currentPlan: plan } = this.state;
    const devices = this.devicesOf(space);
    const [index] = devices; // what is known of a space is known of each of its devices
    const name = devices.length > 1 ? h('span', { class: 'chip' }, this.spaceName(space)) : deviceChip(report, index);
    const { memory: limit } = report.devices[index];
    const work = plan.devices[index];
    const counted = plan.rules.memory === 'peak' ? work.peak : work.resident;
    const share = limit ? ` (${percentText(counted / limit, 0)})` : '';
    const tensors = work.peak > counted ? `, ${bytesText(work.peak)} with tensors` : '';
    const caption = h('figcaption', {}, name,
                      h('span', { class: 'figure' }, `${bytesText(counted)} of ${bytesText(limit)}${share}${tensors}`));
    return h('figure', {}, caption, timed ? this.curve(index, most, limit) : this.level(index, most, limit));
  }

  private curve(index: number, most: number, limit: number | null): HTMLElement {
    const { report, currentPlan: plan } = this.state;
    const { steps, resident, peak } = plan.devices[index];
    const width = 320;
    const height = 64;
    const end = (plan.end ?? []).reduce((latest, time) => Math.max(latest, time), 0) || 1;
    const x = scaleLinear([0, end], [0, width]);
    const y = scaleLinear([0, most], [height, 0]);
    let line = `M0 ${height}`;
    for (let i = 0; i < steps.length; i += 2) {
      if (i > 0) line += `H${x(steps[i]).toFixed(1)}`;
      line += `V${y(steps[i + 1]).toFixed(1)}`;
    }
    const colour = deviceColour(index);
    const picture = svg('svg', {
      viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img',
      'aria-label': `Memory of ${oneLine(report.devices[index].name, 40)} over time: at most ${bytesText(peak)} of ${bytesText(limit)}`,
    },
      svg('path', { d: `${line}H${width}V${height}Z`, fill: colour, 'fill-opacity': 0.35, stroke: colour, 'vector-effect': 'non-scaling-stroke' }),
      svg('rect', { x: 0, y: y(resident), width, height: Math.max(0, height - y(resident)), fill: colour, 'fill-opacity': 0.55 }));
    if (limit !== null && limit <= most) {
      picture.append(svg('line', { x1: 0, x2: width, y1: y(limit), y2: y(limit), class: 'limit', 'vector-effect': 'non-scaling-stroke' }));
    }
    return h('div', { class: 'curve' },
             h('span', { class: 'up' }, h('span', {}, bytesText(most)), h('span', {}, '0 B')), picture,
             axis(end, 3, (time) => timeUnderTitle(time, report.problem.unit, 4)));
  }

  private level(index: number, most: number, limit: number | null): HTMLElement {
    const { resident, peak } = this.state.currentPlan.devices[index];
    const unit = 1024 ** Math.max(0, Math.floor(Math.log(most) / Math.log(1024))); // ticks at whole KiB, MiB, GiB
    const width = (bytes: number) => `width: ${((bytes / most) * 100).toFixed(2)}%`;
    return h('div', {},
             h('div', { class: 'level' },
               h('span', { class: 'alive', style: `${width(peak)}; background: ${deviceColour(index)}`, title: `with live tensors: ${bytesText(peak)}` }),
               h('span', { style: `${width(resident)}; background: ${deviceBackground(index)}`, title: `weights: ${bytesText(resident)}` }),
               limit !== null && limit <= most ? h('i', { class: 'limit-mark', style: `left: ${((limit / most) * 100).toFixed(2)}%` }) : null),
             axis(most / unit, 3, (units) => bytesText(units * unit)));
  }
}

// Every plan, the best single device and the bound on one scale; and which ops two plans place
// apart.
export class ComparisonView {
  readonly element = h('div', { class: 'comparison' });

  constructor(private readonly state: State) {
    state.onChange((change) => {
      if (change === 'plan' || change === 'difference') this.build();
    });
    this.build();
  }

  private build() {
    const { report } = this.state;
    replace(this.element, this.chart(), report.plans.length > 1 ? this.difference() : null);
  }

  private chart(): HTMLElement {
    const { report, currentPlan: { objective, single } } = this.state;
    const { unit } = report.problem;
    // Values of different objectives are not on one scale, and a bound holds for its own.
    const rivals = report.plans.filter((plan) => plan.objective === objective);
    const bound = rivals.reduce((best, plan) => Math.max(best, plan.bound ?? 0), 0);
    const most = Math.max(...rivals.map((plan) => plan.value ?? 0), single?.value ?? 0, bound, 1e-300);
    const row = (label: HTMLElement, value: number, className: string, note: string, current = false) =>
      h('tr', current ? { 'aria-current': 'true' } : {},
        h('th', { scope: 'row' }, label),
        h('td', { class: 'wide' },
          h('span', { class: `value-bar ${className}` },
            h('span', { style: `width: ${((value / most) * 100).toFixed(2)}%` }),
            bound > 0 ? h('i', { style: `left: ${((bound / most) * 100).toFixed(2)}%` }) : null)),
        h('td', { class: 'number' }, timeUnderTitle(value, unit)),
        h('td', { class: 'number' }, value > 0 ? percentText((value - bound) / value) : '–'),
        h('td', {}, note));
    const link = (index: number) =>
      h('button', { type: 'button', class: 'link', click: () => this.state.setPlan(index) }, oneLine(report.plans[index].label, 48));
    const rows = rivals.map((plan) => {
      const index = report.plans.indexOf(plan);
      return row(link(index), plan.value ?? 0, 'plan', `${plan.status}, ${secondsText(plan.seconds)}`, index === this.state.plan);
    });
    if (single) {
      rows.push(row(h('span', {}, 'best single device'), single.value, 'single', oneLine(report.devices[single.device].name, 40)));
    }
    for (const plan of report.plans) {
      if (plan.objective === objective) continue;
      rows.push(h('tr', { class: 'other' }, h('th', { scope: 'row' }, link(report.plans.indexOf(plan))), h('td', { class: 'quiet' }, plan.objective),
                  h('td', { class: 'number' }, timeUnderTitle(plan.value, unit)), h('td', { class: 'number' }, percentText(plan.gap)),
                  h('td', {}, `${plan.status}, ${secondsText(plan.seconds)}`)));
    }
    return h('div', {},
             h('table', { class: 'grid' },
               h('thead', {}, h('tr', {}, h('th', {}, 'Plan'), h('th', {}, ''), h('th', { class: 'number' }, titleOfTimes('Value', unit)),
                                h('th', { class: 'number' }, 'Gap'), h('th', {}, ''))),
               h('tbody', {}, ...rows),
               h('tfoot', {}, h('tr', {}, h('td', {}), h('td', {}, axis(most, 4, (value) => timeUnderTitle(value, unit))),
                                h('td', {}), h('td', {}), h('td', {})))),
             h('p', { class: 'quiet' },
               bound > 0 ? `The line marks the best lower bound, ${timeText(bound, unit)}: no plan can be below it${ifEstimated(report, ', if the estimates hold: ')}.` : '',
               single ? '' : ' No single device can run and hold everything.'));
  }

  private difference(): HTMLElement {
    const { report, plan, other } = this.state;
    const names = [plan, other].map((index) => oneLine(report.plans[index]?.label ?? '', 48));
    if (other < 0) return h('p', { class: 'difference quiet' }, 'Choose a plan under “beside” at the top to see both plans and what they place differently.');
    const head = h('p', {}, `Differences between ${names[0]} and ${names[1]}`);
    const here = report.plans[plan].placement;
    const there = report.plans[other].placement;
    const moved = here.map((_, op) => op).filter((op) => here[op] !== there[op]);
    const counts = new Map<string, number>();
    for (const op of moved) counts.set(`${here[op]} ${there[op]}`, (counts.get(`${here[op]} ${there[op]}`) ?? 0) + 1);
    const pairs = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 24).map(([key, count]) => {
      const [from, to] = key.split(' ').map(Number);
      return h('li', {}, deviceChip(report, from), ' → ', deviceChip(report, to), `: ${plural(count, 'op')}`);
    });
    const list = moved.slice(0, 200).map((op) =>
      h('li', {}, h('button', { type: 'button', class: 'link', click: () => this.state.select({ kind: 'op', index: op }, true) },
                    oneLine(report.ops.name[op], 60)),
        ' ', h('span', { class: 'quiet' }, `${oneLine(report.devices[here[op]].name, 20)} → ${oneLine(report.devices[there[op]].name, 20)}`)));
    return h('div', { class: 'difference' }, head,
             h('p', {}, h('strong', {}, `${plural(moved.length, 'op')} of ${here.length}`), ' on another device; dashed in the graph.'),
             h('ul', { class: 'pairs' }, ...pairs),
             h('details', {}, h('summary', {}, 'The ops'), h('ul', { class: 'columns' }, ...list),
               moved.length > 200 ? h('p', { class: 'quiet' }, `and ${moved.length - 200} more`) : null));
  }
}
