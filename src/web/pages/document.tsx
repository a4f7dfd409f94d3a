/** @jsxImportSource preact */
// Renders a page as a complete HTML document on the server, readable before any script runs. The page's data is embedded for
// hydration. The document contains no inline script or style.

import { render } from 'preact-render-to-string'
import { chartScriptName, type Frame, type Page } from '../page-data.ts'
import { ComparePage } from './catalog/compare-page.tsx'
import { ListPage } from './catalog/list-page.tsx'
import { ModelPage } from './catalog/model-page.tsx'
import { ConsolePage } from './console/console-page.tsx'
import { DevicePage } from './console/device-page.tsx'
import { SignInPage } from './console/sign-in-page.tsx'
import { DocsPage } from './docs-page.tsx'
import { setFirstAnswers } from './hooks.ts'
import { NoticePage, type PageComponents, PageView } from './shell.tsx'

const components: Required<PageComponents> = {
  list: ListPage,
  model: ModelPage,
  compare: ComparePage,
  docs: DocsPage,
  notice: NoticePage,
  'sign-in': SignInPage,
  device: DevicePage,
  console: ConsolePage,
}

export function renderDocument(page: Page, frame: Frame): string {
  setFirstAnswers(page.kind === 'console' ? page.data.answers : {})
  return `<!doctype html>${render(
    <html lang="en" data-theme={frame.theme}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${page.title} · Tollgate`}</title>
        {frame.fontUrls.map((font) => (
          <link key={font} rel="preload" href={font} as="font" type="font/woff2" crossOrigin="anonymous" />
        ))}
        <link rel="stylesheet" href={frame.styleUrl} />
        {frame.chartUrl !== undefined && <meta name={chartScriptName} content={frame.chartUrl} />}
        <link rel="icon" href={frame.iconUrl} type="image/svg+xml" />
      </head>
      <body>
        <div id="root">
          <PageView page={page} frame={frame} components={components} />
        </div>
        <script
          type="application/json"
          id="page-data"
          dangerouslySetInnerHTML={{ __html: dataText({ page, frame }) }}
        />
        <script type="module" src={frame.scriptUrl} />
      </body>
    </html>,
  )}`
}

/** JSON that cannot close the script element. */
function dataText(data: { readonly page: Page; readonly frame: Frame }): string {
  return JSON.stringify(data).replaceAll('<', '\\u003c')
}
