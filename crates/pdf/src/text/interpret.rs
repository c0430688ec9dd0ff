//! Executes the content of a page and records the shown characters with their positions.

use std::{collections::HashMap, rc::Rc};

use hayro_syntax::{
    content::UntypedIter,
    object::{Array, Dict, Name, Object, ObjectIdentifier, Rect, Stream, String as PdfString},
    page::Resources,
};

use super::{font::TextFont, matrix::Matrix};

/// The maximum nesting depth of forms.
const FORMS_DEEP: usize = 16;
/// The maximum number of saved graphics states.
const STATES: usize = 512;
/// The maximum number of characters on a page.
const GLYPHS: usize = 200_000;

/// The flags of annotations that are hidden or not shown on screens.
const UNSEEN: i32 = 2 | 32;

/// A shown character, or several that are drawn as one.
#[derive(Debug, Clone)]
pub(super) struct ShownGlyph {
    pub(super) text: String,
    /// The position on the baseline.
    pub(super) origin: (f32, f32),
    /// The position of the next character.
    pub(super) end: (f32, f32),
    /// The height.
    pub(super) size: f32,
    /// Whether the text is vertical.
    pub(super) is_vertical: bool,
}

/// A cache of loaded fonts. Its key is a font's address in memory, because not all fonts are indirect
/// objects.
#[derive(Default)]
pub(crate) struct FontCache(HashMap<(usize, usize), Rc<TextFont>>);

impl FontCache {
    fn get(&mut self, font: &Dict<'_>) -> Rc<TextFont> {
        let id = (font.data().as_ptr().addr(), font.data().len());
        let known = self.0.entry(id);
        Rc::clone(known.or_insert_with(|| Rc::new(TextFont::load(font))))
    }
}

#[derive(Clone)]
struct GraphicsState {
    matrix: Matrix,
    font: Option<Rc<TextFont>>,
    size: f32,
    character_spacing: f32,
    word_spacing: f32,
    /// The horizontal scaling; 1 is 100 %.
    stretch: f32,
    leading: f32,
    rise: f32,
}

/// The interpreter of one page.
pub(super) struct PageWalk<'c> {
    fonts: &'c mut FontCache,
    state: GraphicsState,
    saved_states: Vec<GraphicsState>,
    text: Matrix,
    line: Matrix,
    /// The replacement texts (`ActualText`) of the open marked content. Each is recorded once,
    /// instead of the characters that are drawn.
    actual_texts: Vec<Option<ActualText>>,
    forms: Vec<ObjectIdentifier>,
    pub(super) glyphs: Vec<ShownGlyph>,
}

struct ActualText {
    text: String,
    is_shown: bool,
}

impl<'c> PageWalk<'c> {
    /// Creates an interpreter. `matrix` rotates the page upright.
    pub(super) fn new(fonts: &'c mut FontCache, matrix: Matrix) -> Self {
        Self {
            fonts,
            state: GraphicsState {
                matrix,
                font: None,
                size: 0.0,
                character_spacing: 0.0,
                word_spacing: 0.0,
                stretch: 1.0,
                leading: 0.0,
                rise: 0.0,
            },
            saved_states: Vec::new(),
            text: Matrix::IDENTITY,
            line: Matrix::IDENTITY,
            actual_texts: Vec::new(),
            forms: Vec::new(),
            glyphs: Vec::new(),
        }
    }

    /// Executes a content stream.
    pub(super) fn execute(&mut self, content: &[u8], resources: &Resources<'_>) {
        let (states, marks) = (self.saved_states.len(), self.actual_texts.len());
        let mut instructions = UntypedIter::new(content);
        while let Some(instruction) = instructions.next() {
            if self.glyphs.len() >= GLYPHS {
                break;
            }
            let operands: Vec<&Object<'_>> = instruction.operands().collect();
            self.execute_instruction(instruction.operator.as_ref(), &operands, resources, states);
        }
        self.actual_texts.truncate(marks);
        if let Some(state) = self.saved_states.drain(states..).next() {
            self.state = state;
        }
    }

    fn execute_instruction(
        &mut self,
        operator: &[u8],
        operands: &[&Object<'_>],
        resources: &Resources<'_>,
        floor: usize,
    ) {
        let number = |index: usize| match operands.get(index) {
            Some(Object::Number(number)) => number.as_f32(),
            _ => 0.0,
        };
        match operator {
            b"q" if self.saved_states.len() < STATES => self.saved_states.push(self.state.clone()),
            b"Q" if self.saved_states.len() > floor => {
                if let Some(state) = self.saved_states.pop() {
                    self.state = state;
                }
            }
            b"cm" => {
                let matrix = Matrix::from_numbers(std::array::from_fn(number));
                self.state.matrix = matrix.then(self.state.matrix);
            }
            b"BT" => (self.text, self.line) = (Matrix::IDENTITY, Matrix::IDENTITY),
            b"Tf" => {
                self.state.size = number(1);
                if let Some(Object::Name(name)) = operands.first() {
                    self.state.font = resources.get_font(name).map(|font| self.fonts.get(&font));
                }
            }
            b"Tc" => self.state.character_spacing = number(0),
            b"Tw" => self.state.word_spacing = number(0),
            b"Tz" => self.state.stretch = number(0) / 100.0,
            b"TL" => self.state.leading = number(0),
            b"Ts" => self.state.rise = number(0),
            b"Td" => self.move_line(number(0), number(1)),
            b"TD" => {
                self.state.leading = -number(1);
                self.move_line(number(0), number(1));
            }
            b"Tm" => {
                self.line = Matrix::from_numbers(std::array::from_fn(number));
                self.text = self.line;
            }
            b"T*" => self.move_line(0.0, -self.state.leading),
            b"Tj" => self.show_operand(operands.first()),
            b"'" => {
                self.move_line(0.0, -self.state.leading);
                self.show_operand(operands.first());
            }
            b"\"" => {
                self.state.word_spacing = number(0);
                self.state.character_spacing = number(1);
                self.move_line(0.0, -self.state.leading);
                self.show_operand(operands.get(2));
            }
            b"TJ" => {
                if let Some(Object::Array(parts)) = operands.first() {
                    self.show_parts(parts);
                }
            }
            b"Do" => {
                if let Some(Object::Name(name)) = operands.first() {
                    self.form(name, resources);
                }
            }
            b"gs" => {
                if let Some(Object::Name(name)) = operands.first()
                    && let Some(font) = resources
                        .get_ext_g_state(name)
                        .and_then(|state| state.get::<Array<'_>>("Font"))
                {
                    let mut items = font.flex_iter();
                    if let (Some(font), Some(size)) = (items.next::<Dict<'_>>(), items.next()) {
                        self.state.font = Some(self.fonts.get(&font));
                        self.state.size = size;
                    }
                }
            }
            b"BMC" => self.actual_texts.push(None),
            b"BDC" => self.mark(operands.get(1), resources),
            b"EMC" => _ = self.actual_texts.pop(),
            _ => {}
        }
    }

    fn move_line(&mut self, x: f32, y: f32) {
        self.line = Matrix::from_numbers([1.0, 0.0, 0.0, 1.0, x, y]).then(self.line);
        self.text = self.line;
    }

    fn mark(&mut self, properties: Option<&&Object<'_>>, resources: &Resources<'_>) {
        let properties = match properties {
            Some(Object::Dict(dict)) => Some((*dict).clone()),
            Some(Object::Name(name)) => resources.properties.get::<Dict<'_>>(name),
            _ => None,
        };
        let meant = properties.and_then(|dict| dict.get::<PdfString<'_>>("ActualText"));
        if self.actual_texts.len() < STATES {
            self.actual_texts.push(meant.map(|meant| ActualText {
                text: super::string_text(meant.as_bytes()),
                is_shown: false,
            }));
        }
    }

    fn show_operand(&mut self, operand: Option<&&Object<'_>>) {
        if let Some(Object::String(string)) = operand {
            self.show(string.as_bytes());
        }
    }

    fn show_parts(&mut self, parts: &Array<'_>) {
        for part in parts.iter::<Object<'_>>() {
            match part {
                Object::String(string) => self.show(string.as_bytes()),
                Object::Number(number) => {
                    let shift = -number.as_f32() / 1_000.0 * self.state.size;
                    self.advance(shift);
                }
                _ => {}
            }
        }
    }

    fn advance(&mut self, length: f32) {
        let is_vertical = self
            .state
            .font
            .as_ref()
            .is_some_and(|font| font.is_vertical);
        let (x, y) = match is_vertical {
            true => (0.0, -length),
            false => (length * self.state.stretch, 0.0),
        };
        self.text = Matrix::from_numbers([1.0, 0.0, 0.0, 1.0, x, y]).then(self.text);
    }

    fn show(&mut self, bytes: &[u8]) {
        let Some(font) = self.state.font.clone() else {
            return;
        };
        for code in font.decode(bytes) {
            let placed = self.text.then(self.state.matrix);
            let origin = placed.apply(0.0, self.state.rise);
            let size = self.state.size.abs() * placed.height();
            let mut length = code.advance * self.state.size;
            self.advance(length);
            let moved = self.text.then(self.state.matrix);
            let end = moved.apply(0.0, self.state.rise);
            length = self.state.character_spacing;
            if code.is_blank {
                length += self.state.word_spacing;
            }
            if length != 0.0 {
                self.advance(length);
            }
            let text = match self.actual_texts.iter_mut().rev().find_map(Option::as_mut) {
                None => code.text,
                Some(meant) if meant.is_shown => String::new(),
                Some(meant) => {
                    meant.is_shown = true;
                    meant.text.clone()
                }
            };
            let is_sane = [origin.0, origin.1, end.0, end.1, size]
                .into_iter()
                .all(|value| value.is_finite() && value.abs() < 1e6);
            if is_sane && size > 0.0 && !text.is_empty() {
                self.glyphs.push(ShownGlyph {
                    text,
                    origin,
                    end,
                    size,
                    is_vertical: font.is_vertical,
                });
            }
        }
    }

    /// Executes a form that the content refers to. Often a form contains the whole page.
    fn form(&mut self, name: &Name<'_>, resources: &Resources<'_>) {
        if let Some(form) = resources.get_x_object(name).filter(is_form) {
            self.execute_form(&form, resources);
        }
    }

    /// Executes an annotation on the page, such as a filled field or a note.
    pub(super) fn annotation(&mut self, annotation: &Dict<'_>, resources: &Resources<'_>) {
        let flags = annotation.get::<i32>("F").unwrap_or(0);
        let rectangle = annotation.get::<Rect>("Rect");
        let (Some(rectangle), true) = (rectangle, flags & UNSEEN == 0) else {
            return;
        };
        let Some(form) = appearance(annotation) else {
            return;
        };
        // The appearance is scaled so that its bounding box fits the annotation's rectangle.
        let own = form.dict().get::<Rect>("BBox").unwrap_or(rectangle);
        let matrix = form_matrix(form.dict()).unwrap_or(Matrix::IDENTITY);
        let corners = [
            (own.x0, own.y0),
            (own.x1, own.y0),
            (own.x0, own.y1),
            (own.x1, own.y1),
        ];
        let corners = corners.map(|(x, y)| matrix.apply(x as f32, y as f32));
        let extent = |values: [f32; 4]| {
            let least = values.into_iter().fold(f32::INFINITY, f32::min);
            (
                least,
                values.into_iter().fold(f32::NEG_INFINITY, f32::max) - least,
            )
        };
        let (left, width) = extent(corners.map(|corner| corner.0));
        let (bottom, height) = extent(corners.map(|corner| corner.1));
        let fit = |goal: f64, own: f32| if own > 0.0 { goal as f32 / own } else { 1.0 };
        let (x, y) = (
            fit(rectangle.width(), width),
            fit(rectangle.height(), height),
        );
        let (right, up) = (
            rectangle.x0 as f32 - left * x,
            rectangle.y0 as f32 - bottom * y,
        );
        let before = self.state.clone();
        self.state.matrix =
            Matrix::from_numbers([x, 0.0, 0.0, y, right, up]).then(self.state.matrix);
        self.execute_form(&form, resources);
        self.state = before;
    }

    fn execute_form(&mut self, form: &Stream<'_>, resources: &Resources<'_>) {
        let id = form.obj_id();
        if self.forms.contains(&id) || self.forms.len() >= FORMS_DEEP {
            return;
        }
        let Ok(content) = form.decoded_data() else {
            return;
        };
        let dict = form.dict();
        let matrix = form_matrix(dict);
        let before = self.state.clone();
        let (text, line) = (self.text, self.line);
        if let Some(matrix) = matrix {
            self.state.matrix = matrix.then(self.state.matrix);
        }
        self.forms.push(id);
        match dict.get::<Dict<'_>>("Resources") {
            Some(own) => self.execute(&content, &Resources::new(own)),
            None => self.execute(&content, resources),
        }
        self.forms.pop();
        self.state = before;
        (self.text, self.line) = (text, line);
    }
}

fn form_matrix(form: &Dict<'_>) -> Option<Matrix> {
    let matrix = form.get::<Array<'_>>("Matrix")?;
    let mut numbers = matrix.iter::<f32>();
    let numbers = std::array::from_fn(|_| numbers.next().unwrap_or(0.0));
    Some(Matrix::from_numbers(numbers))
}

/// Returns the normal appearance of an annotation: a single one, or that of its current state.
fn appearance<'a>(annotation: &Dict<'a>) -> Option<Stream<'a>> {
    let looks = annotation.get::<Dict<'_>>("AP")?;
    match looks.get::<Object<'_>>("N")? {
        Object::Stream(form) => Some(form),
        Object::Dict(states) => states.get(annotation.get::<Name<'_>>("AS")?),
        _ => None,
    }
}

fn is_form(stream: &Stream<'_>) -> bool {
    stream
        .dict()
        .get::<Name<'_>>("Subtype")
        .is_some_and(|subtype| subtype.as_ref() == b"Form")
}
