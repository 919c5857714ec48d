// Finds ops by name or type while the reader types.

import { h, replace } from './dom';
import { oneLine, plural } from './format';
import { deviceBackground } from './palette';
import type { State } from './state';

const SHOWN = 30;

export class Search {
  readonly input = h('input', {
    type: 'search', id: 'search', placeholder: 'Find an op by name or type ( / )', autocomplete: 'off', spellcheck: 'false',
    role: 'combobox', 'aria-expanded': 'false', 'aria-controls': 'search-results', 'aria-label': 'Find an op by name or type',
  });
  private readonly results = h('ul', { id: 'search-results', class: 'results', role: 'listbox', hidden: true });
  readonly element = h('div', { class: 'search' }, this.input, this.results);
  private found: number[] = [];
  private active = -1;
  private readonly folded: string[];

  // `chosen`: after an op was chosen.
  constructor(private readonly state: State, private readonly chosen: () => void) {
    const { ops } = state.report;
    this.folded = ops.name.map((name, op) => `${name}\n${ops.types[ops.type[op]]}`.toLocaleLowerCase());
    this.input.addEventListener('input', () => this.find());
    this.input.addEventListener('keydown', (event) => this.key(event));
    this.input.addEventListener('blur', () => setTimeout(() => this.close(), 150));
    this.input.addEventListener('focus', () => { if (this.input.value) this.find(); });
  }

  private find() {
    const wanted = this.input.value.trim().toLocaleLowerCase();
    if (!wanted) return this.close();
    const { report, currentPlan: plan } = this.state;
    this.found = [];
    for (let op = 0; op < this.folded.length; ++op) {
      if (this.folded[op].includes(wanted)) this.found.push(op);
    }
    const rank = (op: number) => (report.ops.name[op].toLocaleLowerCase() === wanted ? 0 : this.folded[op].startsWith(wanted) ? 1 : 2);
    this.found.sort((a, b) => rank(a) - rank(b) || a - b);
    this.active = this.found.length > 0 ? 0 : -1;
    replace(this.results,
            ...this.found.slice(0, SHOWN).map((op, index) =>
              h('li', { role: 'option', id: `result-${index}`, 'aria-selected': index === this.active ? 'true' : 'false',
                        mousedown: (event: MouseEvent) => { event.preventDefault(); this.choose(index); } },
                h('span', { class: 'swatch', style: `background: ${deviceBackground(plan.placement[op])}` }),
                h('span', { class: 'result-name' }, oneLine(report.ops.name[op], 70)),
                h('span', { class: 'quiet' }, oneLine(report.ops.types[report.ops.type[op]], 24)))),
            h('li', { class: 'quiet count' }, this.found.length === 0 ? 'Nothing found' : plural(this.found.length, 'op')));
    this.results.hidden = false;
    this.input.setAttribute('aria-expanded', 'true');
    this.mark();
  }

  private mark() {
    [...this.results.querySelectorAll('[role=option]')].forEach((item, index) => {
      item.setAttribute('aria-selected', String(index === this.active));
      if (index === this.active) item.scrollIntoView({ block: 'nearest' });
    });
    if (this.active >= 0) this.input.setAttribute('aria-activedescendant', `result-${this.active}`);
    else this.input.removeAttribute('aria-activedescendant');
  }

  private close() {
    this.results.hidden = true;
    this.input.setAttribute('aria-expanded', 'false');
  }

  private choose(index: number) {
    const op = this.found[index];
    if (op === undefined) return;
    this.close();
    this.state.select({ kind: 'op', index: op }, true);
    this.chosen();
  }

  private key(event: KeyboardEvent) {
    const most = Math.min(this.found.length, SHOWN) - 1;
    if (event.key === 'ArrowDown') this.active = Math.min(most, this.active + 1);
    else if (event.key === 'ArrowUp') this.active = Math.max(0, this.active - 1);
    else if (event.key === 'Enter') return this.choose(this.active);
    else if (event.key === 'Escape') {
      this.close();
      this.input.blur();
      event.stopPropagation();
      return;
    } else return;
    event.preventDefault();
    this.mark();
  }
}
