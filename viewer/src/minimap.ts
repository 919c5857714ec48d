// The whole graph in a corner, with a frame round what is in sight: shown while a part is out of
// sight. A click or a drag in it moves the picture.

import { pixelRatio, sizeCanvas } from './canvas';
import { h } from './dom';
import type { Layout } from './graph_layout';
import { deviceColour } from './palette';
import type { State } from './state';
import type { ThemeColours } from './theme';

const MOST = { width: 190, height: 130 };

export interface Sight { left: number; top: number; right: number; bottom: number }

export class Minimap {
  readonly element: HTMLCanvasElement;
  private readonly picture = document.createElement('canvas'); // without the frame
  private scale = 1;

  // `move`: brings a point of the layout into the middle of the view.
  constructor(private readonly state: State, name: string, move: (x: number, y: number) => void) {
    this.element = h('canvas', { class: 'minimap', id: `${name}minimap`, hidden: true, 'aria-hidden': 'true' });
    const go = (event: PointerEvent) => move(event.offsetX / this.scale, event.offsetY / this.scale);
    this.element.addEventListener('pointerdown', (event) => {
      this.element.setPointerCapture(event.pointerId);
      go(event);
    });
    this.element.addEventListener('pointermove', (event) => { if (event.buttons) go(event); });
  }

  // Draws the graph anew: after a change of layout, plan or colours.
  paint(layout: Layout, colours: ThemeColours) {
    const { report: { node }, currentPlan: plan, currentGrouping: grouping } = this.state;
    this.scale = Math.min(MOST.width / Math.max(1, layout.width), MOST.height / Math.max(1, layout.height));
    const width = Math.max(24, layout.width * this.scale);
    const height = Math.max(24, layout.height * this.scale);
    this.element.style.width = `${width}px`;
    this.element.style.height = `${height}px`;
    sizeCanvas(this.element, width, height);
    sizeCanvas(this.picture, width, height);
    const ink = this.picture.getContext('2d')!;
    ink.scale(pixelRatio(), pixelRatio());
    ink.fillStyle = colours.card;
    ink.fillRect(0, 0, width, height);
    const block = (x: number, y: number, wide: number, high: number, colour: string) => {
      ink.fillStyle = colour;
      ink.fillRect(x * this.scale, y * this.scale, Math.max(1, wide * this.scale), Math.max(1, high * this.scale));
    };
    for (const box of layout.boxes) {
      if (grouping.framed && box.op < 0) block(box.x, box.y, box.width, box.height, box.folded ? colours.line : colours.frame);
    }
    plan.placement.forEach((device, op) => {
      if (layout.boxes[grouping.of[op]].folded) return;
      block(layout.x[op] - node.width / 2, layout.y[op] - node.height / 2, node.width, node.height, deviceColour(device));
    });
  }

  // Shows what part of the layout is in sight.
  show(sight: Sight, layout: Layout, colours: ThemeColours) {
    const whole = sight.left <= 0 && sight.top <= 0 && sight.right >= layout.width && sight.bottom >= layout.height;
    this.element.hidden = whole;
    if (whole) return;
    const ink = this.element.getContext('2d')!;
    ink.setTransform(1, 0, 0, 1, 0, 0);
    ink.drawImage(this.picture, 0, 0);
    ink.setTransform(pixelRatio(), 0, 0, pixelRatio(), 0, 0);
    ink.strokeStyle = colours.accent;
    ink.lineWidth = 2;
    const left = Math.max(0, sight.left);
    const top = Math.max(0, sight.top);
    ink.strokeRect(left * this.scale + 1, top * this.scale + 1,
                   Math.max(4, (Math.min(layout.width, sight.right) - left) * this.scale - 2),
                   Math.max(4, (Math.min(layout.height, sight.bottom) - top) * this.scale - 2));
  }
}
