// What every picture on a canvas needs: sharp pixels, and at most one drawing for each frame.

export const pixelRatio = () => window.devicePixelRatio || 1;

// As many pixels as the screen has for this size in CSS pixels.
export function sizeCanvas(canvas: HTMLCanvasElement, width: number, height: number) {
  canvas.width = Math.round(width * pixelRatio());
  canvas.height = Math.round(height * pixelRatio());
}

// Asks for a drawing in the next frame; asking again before it changes nothing.
export function oncePerFrame(draw: () => void): () => void {
  let pending = false;
  return () => {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      draw();
    });
  };
}
