// `npm run compile [-- FILE]`: the whole gateway as one file, for the kind of machine it is made on. From source the pages'
// scripts and styles are bundled at the first request; the single file has no sources, so they are bundled here.

import { join, resolve } from 'node:path'
import { type AssetName, buildAssets } from '../src/web/assets.ts'
import { readDocs } from '../src/web/docs-files.ts'

const root = join(import.meta.dir, '..')

/** All of them: one that is missing here is a type error. */
const assetNames = Object.keys({
  catalog: true,
  console: true,
  chart: true,
  style: true,
  icon: true,
  sans: true,
  mono: true,
} satisfies Record<AssetName, true>) as readonly AssetName[]

/** What takes the place of src/web/assets.ts: the same answers, from bytes instead of sources. */
async function embeddedAssets(): Promise<string> {
  const assets = await buildAssets()
  const rows = assetNames.map((name) => {
    const url = assets.url(name)
    const asset = assets.find(url)
    if (asset === undefined) throw new Error(`there is no bundle of ${name}`)
    return { name, url, type: asset.type, base64: Buffer.from(asset.bytes).toString('base64') }
  })
  return `
    const rows = ${JSON.stringify(rows)}
    export const assetsPath = ${JSON.stringify(rows[0]?.url.replace(/[^/]*$/, ''))}
    export async function buildAssets() {
      const urls = new Map(rows.map(({ name, url }) => [name, url]))
      const found = new Map(rows.map(({ url, type, base64 }) => {
        const bytes = new Uint8Array(Buffer.from(base64, 'base64'))
        return [url, { type, bytes, gzip: Bun.gzipSync(bytes, { level: 9 }) }]
      }))
      return { url: (name) => urls.get(name) ?? '', find: (path) => found.get(path) }
    }`
}

/** `target`: another platform than this one, such as `bun-linux-arm64`. */
export async function compile(outfile: string, target?: Bun.Build.CompileTarget): Promise<void> {
  const contents = await embeddedAssets()
  const docs = `const texts = new Map(${JSON.stringify([...(await readDocs())])})
    export const readDocs = async () => texts`
  await Bun.build({
    // The thread that writes is started by its file's name, so it is an entry of its own, beside the program.
    entrypoints: [join(root, 'src/main.ts'), join(root, 'src/store/sqlite-worker.ts')],
    naming: { entry: '[name].[ext]' },
    target: 'bun',
    format: 'esm',
    // Compiled here once and not at every start, which is then three times as quick.
    bytecode: target === undefined,
    // A bunfig.toml of the folder that it runs in could load code into it.
    compile: { outfile, autoloadBunfig: false, ...(target && { target }) },
    plugins: [
      {
        name: 'embedded assets',
        setup(build) {
          build.onLoad({ filter: /\/src\/web\/assets\.ts$/ }, () => ({ contents, loader: 'js' }))
          build.onLoad({ filter: /\/src\/web\/docs-files\.ts$/ }, () => ({ contents: docs, loader: 'js' }))
        },
      },
    ],
  })
}

if (import.meta.main) {
  const outfile = resolve(process.argv[2] ?? join(import.meta.dir, 'build/tollgate'))
  await compile(outfile)
  process.stdout.write(`${outfile}\n`)
}
