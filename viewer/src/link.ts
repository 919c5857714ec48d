// The part of the address after '#': what is shown and selected, by name, so that a link opens it
// again, also in a page that was made anew.

import type { Selection, State } from './state';

function selected({ selection, report, currentGrouping }: State): [string, string] | null {
  if (!selection) return null;
  const { kind, index } = selection;
  if (kind === 'op') return [kind, report.ops.name[index]];
  return [kind, kind === 'group' ? currentGrouping.groups[index].name : String(index)];
}

export function linkTo(state: State): string {
  const { report, plan, other, currentGrouping } = state;
  const parts = new URLSearchParams();
  if (report.plans.length > 1) parts.set('plan', report.plans[plan].label);
  if (other >= 0) parts.set('beside', report.plans[other].label);
  parts.set('by', currentGrouping.name);
  const what = selected(state);
  if (what) parts.set(...what);
  return `#${parts}`;
}

function selectionIn(parts: URLSearchParams, state: State): Selection | null {
  const { report, currentGrouping, currentPlan } = state;
  const known: [Selection['kind'], (text: string) => number][] = [
    ['op', (name) => report.ops.name.indexOf(name)],
    ['group', (name) => currentGrouping.groups.findIndex((group) => group.name === name)],
    ['transfer', (text) => (Number(text) < currentPlan.transfers.tensor.length ? Number(text) : -1)],
    ['call', (text) => (Number(text) < (currentPlan.calls?.length ?? 0) ? Number(text) : -1)],
  ];
  for (const [kind, find] of known) {
    const text = parts.get(kind);
    const index = text === null ? -1 : find(text);
    if (index >= 0) return { kind, index };
  }
  return null;
}

// Names that this page does not have are passed over.
export function follow(link: string, state: State) {
  const parts = new URLSearchParams(link.replace(/^#/, ''));
  const planCalled = (name: string | null) => state.report.plans.findIndex(({ label }) => label === name);
  const plan = planCalled(parts.get('plan'));
  if (plan >= 0) state.setPlan(plan);
  const beside = planCalled(parts.get('beside'));
  if (beside >= 0 && beside !== state.plan) state.setOther(beside);
  const grouping = state.groupingsOfPlan().find((index) => state.report.groupings[index].name === parts.get('by'));
  if (grouping !== undefined && grouping !== state.grouping) state.setGrouping(grouping);
  const selection = selectionIn(parts, state);
  if (selection) state.select(selection, true);
}

// Keeps the address in step with the page, and the page with the address.
export function linkPage(state: State) {
  follow(location.hash, state);
  state.onChange((change) => {
    if (change !== 'theme' && linkTo(state) !== location.hash) history.replaceState(null, '', linkTo(state));
  });
  window.addEventListener('hashchange', () => follow(location.hash, state));
}
