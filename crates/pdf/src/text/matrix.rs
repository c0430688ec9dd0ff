//! Transformation matrices of PDF.

/// The matrix `[a b c d e f]`, which maps (x, y) to (ax + cy + e, bx + dy + f).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Matrix([f32; 6]);

impl Matrix {
    pub(super) const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    pub(super) fn from_numbers(numbers: [f32; 6]) -> Self {
        Self(numbers)
    }

    /// Returns the transformation that applies `self` and then `next`.
    pub(super) fn then(self, next: Self) -> Self {
        let ([a, b, c, d, e, f], [na, nb, nc, nd, ne, nf]) = (self.0, next.0);
        Self([
            a * na + b * nc,
            a * nb + b * nd,
            c * na + d * nc,
            c * nb + d * nd,
            e * na + f * nc + ne,
            e * nb + f * nd + nf,
        ])
    }

    pub(super) fn apply(self, x: f32, y: f32) -> (f32, f32) {
        let [a, b, c, d, e, f] = self.0;
        (a * x + c * y + e, b * x + d * y + f)
    }

    /// Returns the height of a transformed object with the height 1.
    pub(super) fn height(self) -> f32 {
        self.0[2].hypot(self.0[3])
    }

    /// Returns a rotation by this number of clockwise quarter turns.
    pub(super) fn rotation(quarters: i32) -> Self {
        match quarters.rem_euclid(4) {
            1 => Self([0.0, -1.0, 1.0, 0.0, 0.0, 0.0]),
            2 => Self([-1.0, 0.0, 0.0, -1.0, 0.0, 0.0]),
            3 => Self([0.0, 1.0, -1.0, 0.0, 0.0, 0.0]),
            _ => Self::IDENTITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_follow_one_another() {
        let shift = Matrix::from_numbers([1.0, 0.0, 0.0, 1.0, 10.0, 20.0]);
        let double = Matrix::from_numbers([2.0, 0.0, 0.0, 2.0, 0.0, 0.0]);
        assert_eq!(shift.then(double).apply(1.0, 1.0), (22.0, 42.0));
        assert_eq!(double.then(shift).apply(1.0, 1.0), (12.0, 22.0));
        assert_eq!(double.height(), 2.0);
        // A line of text to the right, on a page that is turned clockwise, runs downwards.
        assert_eq!(Matrix::rotation(1).apply(1.0, 0.0), (0.0, -1.0));
        assert_eq!(
            Matrix::rotation(1).then(Matrix::rotation(3)),
            Matrix::IDENTITY
        );
    }
}
