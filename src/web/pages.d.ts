import type { Frame, Page } from './page-data.ts'

/** A whole HTML document. */
export function renderDocument(page: Page, frame: Frame): string
