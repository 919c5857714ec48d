// Lists behind the pictures: the critical path and the costliest cuts.

import { deviceChip } from './charts';
import { h, replace } from './dom';
import { bytesText, duration, oneLine, plural, timeText, timeUnderTitle, titleOfTimes } from './format';
import type { Selection, State } from './state';

const SHOWN = 100;

export class Tables {
  readonly element = h('div', { class: 'tables' });

  constructor(private readonly state: State) {
    state.onChange((change) => { if (change === 'plan') this.build(); });
    this.build();
  }

  private build() {
    replace(this.element, this.critical(), this.cuts());
  }

  private link(text: string, selection: Selection): HTMLElement {
    return h('button', { type: 'button', class: 'link', click: () => this.state.select(selection, true) }, oneLine(text, 60));
  }

  private critical(): HTMLElement | null {
    const { report, currentPlan: plan } = this.state;
    if (plan.critical.length === 0) return null;
    const { unit } = report.problem;
    const why = { first: 'start', input: 'input', device: 'device was busy', resource: 'resources were held', port: 'port was busy' };
    const rows = plan.critical.slice(0, SHOWN).map(([kind, index, reason]) => {
      const tensor = kind === 'transfer' ? plan.transfers.tensor[index] : -1;
      const name = kind === 'op' ? report.ops.name[index]
        : kind === 'call' ? `call of ${plural(plan.calls![index].ops.length, 'op')}`
        : `send ${report.tensors.name[tensor] || report.ops.name[report.tensors.from[tensor]]}`;
      const device = kind === 'op' ? plan.placement[index] : kind === 'call' ? plan.calls![index].device
        : plan.transfers.from[index] >= 0 ? plan.transfers.from[index] : plan.transfers.to[index];
      const [start, end] = kind === 'op' ? [plan.start![index], plan.end![index]]
        : kind === 'call' ? [plan.calls![index].start, plan.calls![index].end]
        : [plan.transfers.start[index], plan.transfers.end[index]];
      return h('tr', {}, h('td', { class: 'number' }, timeUnderTitle(start, unit)), h('td', { class: 'number' }, timeUnderTitle(duration(start, end), unit, 4)),
               h('td', {}, deviceChip(report, device)), h('td', {}, this.link(name, { kind, index })), h('td', { class: 'quiet' }, why[reason]));
    });
    return h('details', {}, h('summary', {}, `Critical path: ${plural(plan.critical.length, 'step')}`),
             h('table', { class: 'grid small' },
               h('thead', {}, h('tr', {}, h('th', { class: 'number' }, titleOfTimes('Start', unit)), h('th', { class: 'number' }, titleOfTimes('Takes', unit)), h('th', {}, 'Device'), h('th', {}, 'What'), h('th', {}, 'Waited for'))),
               h('tbody', {}, ...rows)),
             plan.critical.length > SHOWN ? h('p', { class: 'quiet' }, `and ${plan.critical.length - SHOWN} more`) : null);
  }

  private cuts(): HTMLElement {
    const { report, currentPlan: plan } = this.state;
    const { unit } = report.problem;
    const { tensor, from, to, start, end } = plan.transfers;
    const order = tensor.map((_, index) => index).sort((a, b) => duration(start[b], end[b]) - (duration(start[a], end[a])));
    const total = order.reduce((sum, index) => sum + duration(start[index], end[index]), 0);
    const bytes = order.reduce((sum, index) => sum + report.tensors.bytes[tensor[index]], 0);
    const place = (device: number) => (device < 0 ? 'host memory' : deviceChip(report, device));
    const rows = order.slice(0, SHOWN).map((index) =>
      h('tr', {}, h('td', {}, this.link(report.tensors.name[tensor[index]] || report.ops.name[report.tensors.from[tensor[index]]], { kind: 'transfer', index })),
        h('td', {}, place(from[index])), h('td', {}, place(to[index])),
        h('td', { class: 'number' }, report.tensors.bytes[tensor[index]] > 0 ? bytesText(report.tensors.bytes[tensor[index]]) : '–'),
        h('td', { class: 'number' }, timeUnderTitle(duration(start[index], end[index]), unit, 4))));
    const size = bytes > 0 ? `, ${bytesText(bytes)}` : '';
    return h('details', {}, h('summary', {}, `Transfers: ${tensor.length.toLocaleString('en')}${size}, ${timeText(total, unit)} in all`),
             h('table', { class: 'grid small' },
               h('thead', {}, h('tr', {}, h('th', {}, 'Tensor'), h('th', {}, 'From'), h('th', {}, 'To'), h('th', { class: 'number' }, 'Size'), h('th', { class: 'number' }, titleOfTimes('Takes', unit)))),
               h('tbody', {}, ...rows)),
             order.length > SHOWN ? h('p', { class: 'quiet' }, `and ${order.length - SHOWN} shorter ones`) : null);
  }
}
