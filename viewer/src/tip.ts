// The small box beside the pointer.

import { h, replace } from './dom';

const tip = h('div', { class: 'tip', role: 'tooltip', hidden: true });

export function mountTip() {
  document.body.append(tip);
}

export function showTip(event: MouseEvent, title: string, ...lines: string[]) {
  replace(tip, h('strong', {}, title), ...lines.filter(Boolean).map((line) => h('div', {}, line)));
  tip.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = tip;
  const x = Math.min(event.clientX + 14, innerWidth - width - 8);
  const y = event.clientY + 16 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 16;
  tip.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
}

export function hideTip() {
  tip.hidden = true;
}
