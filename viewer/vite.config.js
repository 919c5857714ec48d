// Builds the page as one file, dist/page.html: script and style sheet inline, nothing left to fetch.
import { defineConfig } from 'vite';

function inlineEverything() {
  return {
    name: 'inline-everything',
    enforce: 'post',
    generateBundle(_options, bundle) {
      const files = Object.values(bundle);
      const page = files.find((file) => file.fileName.endsWith('.html'));
      const script = files.find((file) => file.type === 'chunk');
      const style = files.find((file) => file.fileName.endsWith('.css'));
      let html = page.source;
      html = html.replace(/<link rel="stylesheet"[^>]*>/, '');
      html = html.replace(/<script type="module"[^>]*><\/script>/, '');
      // Functions as replacements: the sources contain "$&" and the like.
      html = html.replace('</head>', () => `<style>${style.source}</style>\n</head>`);
      const code = script.code.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
      html = html.replace('</body>', () => `<script type="module">${code}</script>\n</body>`);
      for (const name of Object.keys(bundle)) delete bundle[name];
      this.emitFile({ type: 'asset', fileName: 'page.html', source: html });
    },
  };
}

export default defineConfig({
  build: { outDir: 'dist', modulePreload: false, cssCodeSplit: false, target: 'es2022' },
  esbuild: { charset: 'ascii', legalComments: 'none' },
  plugins: [inlineEverything()],
});
