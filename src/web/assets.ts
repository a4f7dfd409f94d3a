// The pages' scripts and styles, bundled when the first page is requested and kept in memory. Names contain a hash of the
// content, so browsers cache them forever. Only names created here are served.

import { join } from 'node:path'

export interface Asset {
  readonly type: string
  readonly bytes: Uint8Array
  readonly gzip: Uint8Array
}

const entryPoints = {
  catalog: 'pages/browser/catalog.tsx',
  console: 'pages/browser/console.tsx',
  style: 'styles/index.css',
  icon: 'styles/icon.svg',
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
}

/** Throws when bundling fails, which is a bug in this repository. */
export async function buildAssets(): Promise<Assets> {
  const byPath = new Map<string, Asset>()
  const urls = new Map<string, string>()
  for (const [name, path] of Object.entries(entryPoints)) {
    const bytes = await bundle(join(import.meta.dir, path))
    const extension = path.endsWith('.tsx') ? 'js' : path.slice(path.lastIndexOf('.') + 1)
    const url = `${assetsPath}${name}-${Bun.hash(bytes).toString(36)}.${extension}`
    const type = types[extension] ?? 'application/octet-stream'
    byPath.set(url, { type, bytes, gzip: Bun.gzipSync(Uint8Array.from(bytes), { level: 9 }) })
    urls.set(name, url)
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
