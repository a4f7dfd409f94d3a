// The pages' scripts, styles and fonts, bundled when the first page is requested and kept in memory. Names contain a hash of
// the content, so browsers cache them forever. Only names created here are served.

import { join } from 'node:path'

export interface Asset {
  readonly type: string
  readonly bytes: Uint8Array
  readonly gzip: Uint8Array
}

const entryPoints = {
  catalog: 'pages/browser/catalog.tsx',
  console: 'pages/browser/console.tsx',
  chart: 'pages/browser/chart.ts',
  style: 'styles/index.css',
  icon: 'styles/icon.svg',
  sans: '@fontsource-variable/inter/files/inter-latin-wght-normal.woff2',
  mono: '@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2',
} as const

export type AssetName = keyof typeof entryPoints

export interface Assets {
  url(name: AssetName): string
  find(path: string): Asset | undefined
}

export const assetsPath = '/assets/'

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
}

/** The names that tokens.css uses. */
const fontFamilies = { sans: 'Inter Variable', mono: 'JetBrains Mono Variable' } as const

/** Throws when bundling fails, which is a bug in this repository. */
export async function buildAssets(): Promise<Assets> {
  const byPath = new Map<string, Asset>()
  const urls = new Map<string, string>()
  const add = (name: string, extension: string, bytes: Uint8Array): string => {
    const url = `${assetsPath}${name}-${Bun.hash(bytes).toString(36)}.${extension}`
    const type = types[extension] ?? 'application/octet-stream'
    byPath.set(url, { type, bytes, gzip: Bun.gzipSync(Uint8Array.from(bytes), { level: 9 }) })
    urls.set(name, url)
    return url
  }
  // Fonts first: the stylesheet names their addresses.
  let fontFaces = ''
  for (const [name, family] of Object.entries(fontFamilies)) {
    const path = Bun.resolveSync(entryPoints[name as keyof typeof fontFamilies], import.meta.dir)
    const url = add(name, 'woff2', await Bun.file(path).bytes())
    // Preloaded, and optional: a font that is late is used from the next page on, so text never moves.
    fontFaces += `@font-face{font-family:"${family}";font-weight:100 900;font-display:optional;src:url(${url})format("woff2")}`
  }
  for (const [name, path] of Object.entries(entryPoints)) {
    if (name in fontFamilies) continue
    const bytes = await bundle(join(import.meta.dir, path))
    if (name === 'style') add(name, 'css', new TextEncoder().encode(fontFaces + new TextDecoder().decode(bytes)))
    else add(name, /[.]tsx?$/.test(path) ? 'js' : 'svg', bytes)
  }
  return {
    url: (name) => urls.get(name) ?? '',
    find: (path) => byPath.get(path),
  }
}

async function bundle(path: string): Promise<Uint8Array> {
  if (path.endsWith('.svg')) return await Bun.file(path).bytes()
  const { outputs } = await Bun.build({
    entrypoints: [path],
    target: 'browser',
    minify: true,
    define: { 'process.env.NODE_ENV': '"production"' },
  })
  const [output] = outputs
  if (!output || outputs.length > 1) throw new Error(`${path} was bundled into ${outputs.length} files, not one`)
  return new Uint8Array(await output.arrayBuffer())
}
