/** @jsxImportSource preact */
// A page inside what stands around every page: masthead, main part, footer. The same on the server and in the browser.

import type { ComponentType } from 'preact'
import type { Frame, Page, PageData, PageKind } from '../../page-data.ts'
import { Masthead } from './masthead.tsx'

/** The pages that a bundle knows; a script for the catalog need not carry the console. */
export type PageComponents = { readonly [Kind in PageKind]?: ComponentType<PageData[Kind]> }

export interface PageViewProps {
  readonly page: Page
  readonly frame: Frame
  readonly components: PageComponents
}

export function PageView({ page, frame, components }: PageViewProps) {
  // The union pairs every kind with its data; that the component of the kind takes it is beyond what types can follow.
  const Content = components[page.kind] as ComponentType<Page['data']> | undefined
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Masthead kind={page.kind} frame={frame} />
      <main id="main" tabIndex={-1}>
        {Content && <Content {...page.data} />}
      </main>
      <footer class="footer">
        <span>Tollgate {frame.version}</span>
        <span>Prices are in US dollars per million tokens, exactly as they are billed.</span>
      </footer>
    </>
  )
}
